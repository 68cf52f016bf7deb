//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/testenv"
)

// largeDebugFile returns a debug file of more than 100 MB with compressed sections, such as one of
// Debian's openjdk-17-dbg.
func largeDebugFile(t *testing.T) string {
	t.Helper()
	found := ""
	filepath.WalkDir("/usr/lib/debug/.build-id", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Size() > 100<<20 {
			found = path
			return fs.SkipAll
		}
		return nil
	})
	if found == "" {
		testenv.Missing(t, "a debug file of 100 MB in /usr/lib/debug, of the group long")
	}
	return found
}

// Eight logs come from different builds of a large program with compressed debug information. The
// process must stay within the default --max-memory, in a control group with little more memory,
// and print every plain line.
func TestRealDebugFilesStayWithinMaxMemory(t *testing.T) {
	testenv.OnlyLong(t)
	const mib, logs, frames = 1 << 20, 8, 300
	const most, group = (512 + 64) * mib, 700 * mib
	data, err := os.ReadFile(largeDebugFile(t))
	if err != nil {
		t.Fatal(err)
	}
	id, err := buildid.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text := file.Section(".text")
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	var names []string
	for i := range logs {
		other := id.Bytes()
		other[0] += byte(i + 1)
		digits := hex.EncodeToString(other)
		path := filepath.Join(dir, ".build-id", digits[:2], digits[2:]+".debug")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(data, id.Bytes(), other), 0o644); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		fmt.Fprintf(&log, "{{{module:0:libjvm.so:elf:%s}}}\n{{{mmap:0x7f0000000000:%#x:load:0:rx:0}}}\n", digits, text.Addr+text.Size+4096)
		for k := range frames {
			fmt.Fprintf(&log, "{{{pc:%#x}}}\nplain %d\n", 0x7f0000000000+text.Addr+random.Uint64N(text.Size), k)
		}
		names = append(names, filepath.Join(dir, fmt.Sprintf("%d.log", i)))
		if err := os.WriteFile(names[i], []byte(log.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "HOME=") || strings.HasPrefix(s, "XDG_CACHE_HOME=")
	}), "XDG_CACHE_HOME=")
	args := []string{"--follow", "--start-at=beginning", "--omit-module-lines", "--debug-file-directory=" + dir}
	r := startInGroup(t, group, env, nil, append(args, names...)...)
	lines, pause := r.collect(t, 2*frames*logs)
	peak := r.peak(t)
	r.cmd.Process.Kill()
	r.cmd.Wait()
	plain := 0
	for _, line := range lines {
		if strings.HasPrefix(line, "plain ") {
			plain++
		}
	}
	t.Logf("%d MiB in memory at most, longest pause %v, group %q", peak/mib, pause, r.group)
	if plain != frames*logs || peak > most {
		t.Errorf("%d plain lines of %d, %d MiB in memory, want at most %d", plain, frames*logs, peak/mib, most/mib)
	}
}
