package integration

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/symfilter/symfilter/buildid"
)

// For a module with a small debug file and a frame, symfilter makes four system calls: stat, open,
// read, close.
func TestSmallModulesTakeFourSystemCalls(t *testing.T) {
	need(t, "gcc")
	dir := t.TempDir()
	source, built, tree := filepath.Join(dir, "m.c"), filepath.Join(dir, "m.so"), filepath.Join(dir, "tree")
	if err := os.WriteFile(source, []byte("int entry(int x) { return x * 3; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "gcc", "-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o", built, source)
	data, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	id, err := buildid.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	program, err := elf.Open(built)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	symbols, err := program.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	entry := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "entry" })
	addr := symbols[entry].Value
	raw := id.Bytes()
	at := bytes.Index(data, raw)
	modules := func(n int) []byte {
		var log bytes.Buffer
		for i := range n {
			binary.BigEndian.PutUint32(raw, uint32(i))
			copy(data[at:], raw)
			hexID := hex.EncodeToString(raw)
			path := filepath.Join(tree, ".build-id", hexID[:2], hexID[2:]+".debug")
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			base := uint64(0x7f0000000000) + uint64(i)<<20
			fmt.Fprintf(&log, "{{{module:%d:lib%d.so:elf:%s}}}\n{{{mmap:%#x:0x10000:load:%d:rx:0}}}\n{{{bt:0:%#x:pc}}}\n", i, i, hexID, base, i, base+addr)
		}
		return log.Bytes()
	}
	// matches system calls about files, except those that the runtime makes while goroutines wait
	call := regexp.MustCompile(`(?m)^[0-9]+ +(newfstatat|stat|lstat|fstat|openat|open|close|read|pread64|mmap|munmap|epoll_ctl|readlinkat|getdents64|statfs|fcntl)\(`)
	calls := func(n int) int {
		input := filepath.Join(dir, strconv.Itoa(n))
		if err := os.WriteFile(input, modules(n), 0o666); err != nil {
			t.Fatal(err)
		}
		trace := filepath.Join(dir, "trace")
		out := traced(t, "-f", "-o", trace, "-e", "trace=%file,%desc", command, "--no-default-debug-directories", "--debug-file-directory="+tree, input)
		if got := bytes.Count(out, []byte(" entry ")); got < n {
			t.Fatalf("%d frames of %d are resolved:\n%.2000s", got, n, out)
		}
		all, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		return len(call.FindAll(all, -1))
	}
	few, many := 100, 400
	before := calls(few)
	after := calls(many)
	if each := float64(after-before) / float64(many-few); each > 4.5 {
		t.Errorf("%.1f system calls for each module, want 4", each)
	}
}
