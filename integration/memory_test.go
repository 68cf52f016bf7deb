//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A packedFile is an ELF file with a function at 0x1000. Each of its compressed debug sections
// inflates to its own data and then zeros.
type packedFile struct {
	sections map[string]string // compressed, by name
	inflated map[string]uint64 // bytes
}

// unitOf returns a unit of DWARF 4 for 256 bytes of code from 0x1000 on, and its abbreviations.
func unitOf() (info, abbrev []byte) {
	abbrev = []byte{1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, 2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0, 0}
	le := binary.LittleEndian
	body := []byte{4, 0, 0, 0, 0, 0, 8, 1}
	body = le.AppendUint32(le.AppendUint64(body, 0x1000), 0x100)
	body = append(body, 2)
	body = append(body, "described\x00"...)
	body = le.AppendUint32(le.AppendUint64(body, 0x1000), 0x100)
	body = append(body, 0)
	return append(le.AppendUint32(nil, uint32(len(body))), body...), abbrev
}

func newPackedFile(t *testing.T, count int, size uint64) *packedFile {
	t.Helper()
	info, abbrev := unitOf()
	p := &packedFile{sections: map[string]string{}, inflated: map[string]uint64{}}
	pack := func(name string, head []byte, size uint64) {
		var b bytes.Buffer
		le := binary.LittleEndian
		var header []byte
		header = le.AppendUint32(header, uint32(elf.COMPRESS_ZLIB))
		header = le.AppendUint32(header, 0)
		header = le.AppendUint64(le.AppendUint64(header, size), 1)
		b.Write(header)
		z := zlib.NewWriter(&b)
		z.Write(head)
		if _, err := io.CopyN(z, &nearlyZeros{random: rand.NewChaCha8([32]byte{})}, int64(size)-int64(len(head))); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		p.sections[name], p.inflated[name] = b.String(), size
	}
	pack(".debug_info", info, size)
	pack(".debug_abbrev", abbrev, uint64(len(abbrev)))
	for _, name := range []string{".debug_str", ".debug_line_str", ".debug_ranges"}[:count-1] {
		pack(name, nil, size)
	}
	return p
}

// nearlyZeros is a reader of zeros, with a few random bytes in each block. The random bytes bound
// the ratio: zlib compresses pure zeros by a factor of a thousand.
type nearlyZeros struct{ random *rand.ChaCha8 }

func (z *nearlyZeros) Read(b []byte) (int, error) {
	clear(b)
	z.random.Read(b[:min(len(b), len(b)/4096)])
	return len(b), nil
}

// place writes the file with this build ID into the tree of debug files at dir.
func (p *packedFile) place(t *testing.T, dir string, id []byte) {
	t.Helper()
	type section struct {
		name                  string
		typ                   elf.SectionType
		flags, addr           uint64
		link, info, entrySize uint64
		data                  string
		size                  uint64 // zeros: number of zeros at the end of the section
	}
	le := binary.LittleEndian
	note := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 4), uint32(len(id))), 3)
	note = append(append(note, "GNU\x00"...), id...)
	symbols := make([]byte, 24)
	symbols = le.AppendUint32(symbols, 1)
	symbols = append(symbols, byte(elf.STB_GLOBAL)<<4|byte(elf.STT_FUNC), 0)
	symbols = le.AppendUint16(symbols, 1)
	symbols = le.AppendUint64(le.AppendUint64(symbols, 0x1000), 0x100)
	all := []section{
		{},
		{name: ".text", typ: elf.SHT_NOBITS, flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), addr: 0x1000, size: 0x1000},
		{name: ".symtab", typ: elf.SHT_SYMTAB, link: 3, info: 1, entrySize: 24, data: string(symbols)},
		{name: ".strtab", typ: elf.SHT_STRTAB, data: "\x00known\x00"},
		{name: ".note.gnu.build-id", typ: elf.SHT_NOTE, flags: uint64(elf.SHF_ALLOC), data: string(note)},
	}
	for _, name := range []string{".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_ranges"} {
		if data, ok := p.sections[name]; ok {
			all = append(all, section{name: name, typ: elf.SHT_PROGBITS, flags: uint64(elf.SHF_COMPRESSED), data: data})
		}
	}
	names := "\x00"
	all = append(all, section{name: ".shstrtab", typ: elf.SHT_STRTAB})
	for _, s := range all {
		names += s.name + "\x00"
	}
	all[len(all)-1].data = names
	body, headers, nameAt := make([]byte, 64), []byte(nil), uint32(1)
	for i, s := range all {
		for len(body)%8 != 0 {
			body = append(body, 0)
		}
		size, at := uint64(len(s.data)), uint32(0)
		if s.typ == elf.SHT_NOBITS {
			size = s.size
		}
		if i > 0 {
			at, nameAt = nameAt+1, nameAt+uint32(len(s.name))+1
		}
		headers = le.AppendUint32(le.AppendUint32(headers, at), uint32(s.typ))
		for _, v := range []uint64{s.flags, s.addr, uint64(len(body)), size} {
			headers = le.AppendUint64(headers, v)
		}
		headers = le.AppendUint32(le.AppendUint32(headers, uint32(s.link)), uint32(s.info))
		headers = le.AppendUint64(le.AppendUint64(headers, 1), s.entrySize)
		body = append(body, s.data...)
	}
	head := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	head = le.AppendUint16(le.AppendUint16(head, uint16(elf.ET_DYN)), uint16(elf.EM_X86_64))
	head = le.AppendUint32(head, 1)
	head = le.AppendUint64(le.AppendUint64(le.AppendUint64(head, 0), 0), uint64(len(body)))
	head = le.AppendUint32(head, 0)
	for _, v := range []int{64, 56, 0, 64, len(all), len(all) - 1} {
		head = le.AppendUint16(head, uint16(v))
	}
	copy(body, head)
	name := hex.EncodeToString(id)
	path := filepath.Join(dir, ".build-id", name[:2], name[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(body, headers...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// packedLog returns a log with a frame in each module and plain lines between the frames.
func packedLog(ids [][]byte) string {
	var b strings.Builder
	for i, id := range ids {
		fmt.Fprintf(&b, "{{{module:%d:m%d.so:elf:%x}}}\n{{{mmap:%#x:0x1000:load:%d:rx:0x1000}}}\n", i, i, id, 0x10000*(i+1), i)
		fmt.Fprintf(&b, "{{{bt:0:%#x}}}\nplain %d\n", 0x10000*(i+1)+16, i)
	}
	return b.String()
}

// A memoryRun is a run of the command whose memory is measured.
type memoryRun struct {
	cmd    *exec.Cmd
	stderr lockedBuffer // read while the command writes to it
	lines  chan string
	group  string // path of the control group; empty without one
}

// A lockedBuffer may be read and written at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startInGroup starts symfilter. If the system allows a control group, its memory is limited to
// limit bytes.
func startInGroup(t *testing.T, limit int64, env []string, stdin io.Reader, args ...string) *memoryRun {
	t.Helper()
	r := &memoryRun{lines: make(chan string, 1<<16)}
	r.group = memoryGroup(t, limit)
	script := `exec "$0" "$@"`
	if r.group != "" {
		script = `echo $$ >"` + r.group + `/cgroup.procs" && ` + script
	}
	r.cmd = exec.Command("/bin/sh", append([]string{"-c", script, command}, args...)...)
	r.cmd.Env = env
	r.cmd.Stdin = stdin
	r.cmd.Stderr = &r.stderr
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	return r
}

// memoryGroup makes a control group for memory that is removed at the end of the test. It returns
// "" if the system does not allow it.
func memoryGroup(t *testing.T, limit int64) string {
	for _, g := range []struct{ root, limit string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		if _, err := os.Stat(filepath.Join(g.root, "cgroup.procs")); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(g.root, "symfilter-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(dir) })
		if err := os.WriteFile(filepath.Join(dir, g.limit), []byte(strconv.FormatInt(limit, 10)), 0o644); err == nil {
			return dir
		}
	}
	return ""
}

func (r *memoryRun) peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("no VmHWM: the command has ended; it said %q", r.stderr.String())
	return 0
}

// collect reads n lines. It returns the lines and the longest pause before a line.
func (r *memoryRun) collect(t *testing.T, n int) (lines []string, pause time.Duration) {
	t.Helper()
	const patience = 2 * time.Minute
	last := time.Now()
	for len(lines) < n {
		select {
		case line, ok := <-r.lines:
			if !ok {
				r.cmd.Wait()
				t.Fatalf("it ended after %d of %d lines: %v, %s", len(lines), n, r.cmd.ProcessState, r.stderr.String())
			}
			lines = append(lines, line)
			pause = max(pause, time.Since(last))
			last = time.Now()
		case <-time.After(patience):
			t.Fatalf("%d of %d lines after %v: %s", len(lines), n, patience, r.stderr.String())
		}
	}
	return lines, pause
}

// The process must stay within --max-memory and print all lines, whatever the total inflated size
// of the files, and wherever the cache is.
func TestAllFilesTogetherStayWithinMaxMemory(t *testing.T) {
	const mib = 1 << 20
	files, sections, size, budget, group := 4, 4, uint64(24*mib), int64(128*mib), int64(320*mib)
	if long() {
		files, size, budget, group = 16, 108*mib, 512*mib, 700*mib
	}
	const slack = 64 * mib
	p := newPackedFile(t, sections, size)
	dir := t.TempDir()
	var ids [][]byte
	for i := range files {
		id := slices.Concat([]byte{0xb0, byte(i)}, make([]byte, 18))
		ids = append(ids, id)
		p.place(t, dir, id)
	}
	shm, err := os.MkdirTemp("/dev/shm", "symfilter-test-")
	if err != nil {
		shm = ""
	} else {
		t.Cleanup(func() { os.RemoveAll(shm) })
	}
	for _, cache := range []struct{ name, dir string }{{"no cache", ""}, {"cache on disk", t.TempDir()}, {"cache in memory", shm}} {
		env := append(slices.DeleteFunc(os.Environ(), func(s string) bool {
			return strings.HasPrefix(s, "HOME=") || strings.HasPrefix(s, "XDG_CACHE_HOME=")
		}), "XDG_CACHE_HOME="+cache.dir)
		flags := []string{fmt.Sprintf("--max-memory=%dM", budget/mib), "--debug-file-directory=" + dir}
		check := func(t *testing.T, r *memoryRun, lines []string, pause time.Duration, plain int) {
			peak := r.peak(t)
			t.Logf("%d MiB in memory at most, of %d; longest pause %v; group %q\n%s", peak/mib, budget/mib, pause, r.group, r.stderr.String())
			if peak > budget+slack {
				t.Errorf("%d MiB in memory, want at most %d and %d", peak/mib, budget/mib, slack/mib)
			}
			if peak < int64(size) && cache.name == "no cache" {
				t.Errorf("%d MiB in memory: nothing was inflated", peak/mib)
			}
			n, named := 0, 0
			for _, line := range lines {
				if strings.HasPrefix(line, "plain ") {
					n++
				}
				if strings.Contains(line, "known") || strings.Contains(line, "described") {
					named++
				}
			}
			if n != plain || named == 0 { // on a busy machine not all files are found in time
				t.Errorf("%d plain lines and %d named frames, want %d: %q", n, named, plain, lines)
			}
		}
		t.Run(cache.name+", one stream", func(t *testing.T) {
			if cache.name == "cache in memory" && cache.dir == "" {
				t.Skip("no /dev/shm")
			}
			in, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r := startInGroup(t, group, env, in, append(flags, "--omit-module-lines")...)
			in.Close()
			if _, err := io.WriteString(w, packedLog(ids)); err != nil {
				t.Fatal(err)
			}
			lines, pause := r.collect(t, 2*files)
			check(t, r, lines, pause, files)
			w.Close()
			if err := r.cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, r.stderr.String())
			}
		})
		t.Run(cache.name+", followed", func(t *testing.T) {
			if cache.name == "cache in memory" && cache.dir == "" {
				t.Skip("no /dev/shm")
			}
			logs := t.TempDir()
			args := append(flags, "--follow", "--omit-module-lines")
			for i := range ids {
				name := filepath.Join(logs, fmt.Sprintf("%d.log", i))
				if err := os.WriteFile(name, []byte(packedLog(ids[i:i+1])), 0o644); err != nil {
					t.Fatal(err)
				}
				args = append(args, name)
			}
			r := startInGroup(t, group, env, nil, args...)
			lines, pause := r.collect(t, 2*files)
			check(t, r, lines, pause, files)
			r.cmd.Process.Signal(os.Interrupt)
			r.cmd.Wait()
		})
	}
}
