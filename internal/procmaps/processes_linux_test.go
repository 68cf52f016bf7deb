package procmaps

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/testenv"
)

const arch = "../../symbolize/testdata/arch/"

// copied returns the path of a copy of a fixture in dir.
func copied(t *testing.T, dir, fixture string) string {
	t.Helper()
	data, err := os.ReadFile(arch + fixture)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, fixture)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// mapCode maps the first page of a file as executable memory, at the given address unless it is
// nil, and returns the address.
func mapCode(t *testing.T, path string, at unsafe.Pointer) unsafe.Pointer {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags := unix.MAP_PRIVATE
	if at != nil {
		flags |= unix.MAP_FIXED
	}
	address, err := unix.MmapPtr(int(f.Fd()), 0, at, uintptr(os.Getpagesize()), unix.PROT_READ|unix.PROT_EXEC, flags)
	if err != nil {
		t.Fatal(err)
	}
	if at == nil {
		t.Cleanup(func() { unix.MunmapPtr(address, uintptr(os.Getpagesize())) })
	}
	return address
}

// headersOf returns the headers of a fixture.
func headersOf(t *testing.T, fixture string) *file { return headersAt(t, arch+fixture) }

// headersAt returns the headers of a file.
func headersAt(t *testing.T, path string) *file {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return readFile(f, info)
}

// started returns Processes that have read the maps of a program.
func started(pid int) *Processes {
	p := New()
	p.Start(pid)
	p.await()
	return p
}

// await waits for the current look, if any.
func (p *Processes) await() {
	p.mu.Lock()
	under := p.under
	p.mu.Unlock()
	if under != nil {
		<-under
	}
}

// rest makes the next call of look read the maps at once.
func (p *Processes) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Time{}
}

// reread reads the maps without regard to the time since the last read.
func reread(p *Processes) {
	p.rest()
	p.look()
	p.await()
}

// At must return the file that the process has mapped at an address, even if another file has its
// path by now. It must return no file if the mapping was replaced lately.
func TestAMappingIsThatOfItsFile(t *testing.T) {
	dir := t.TempDir()
	path := copied(t, dir, "x86_64.elf")
	at := mapCode(t, path, nil)
	p := started(os.Getpid())
	addr := uint64(uintptr(at)) + 0x370
	got, ok := p.At(addr)
	if !ok || got.Path != path || got.PID != os.Getpid() || got.Start != uint64(uintptr(at)) || got.ID.IsZero() {
		t.Fatalf("got %+v, %v", got, ok)
	}
	const linked = 0x1370 // address of the code in the file
	if addr-got.Bias != linked {
		t.Errorf("%#x is %#x in the file, want %#x", addr, addr-got.Bias, linked)
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil { // on the same disk
		t.Fatal(err)
	}
	if err := os.Rename(copied(t, other, "aarch64.elf"), path); err != nil {
		t.Fatal(err)
	}
	reread(p)
	if again, ok := p.At(addr); !ok || again.ID != got.ID {
		t.Errorf("after another file took the path: %+v, %v", again, ok)
	}
	mapCode(t, path, at)
	reread(p)
	if m, ok := p.At(addr); ok {
		t.Errorf("after another file was mapped there: %+v", m)
	}
	p.looker.clock += lingers
	reread(p)
	if m, ok := p.At(addr); !ok || m.ID == got.ID {
		t.Errorf("some time later: %+v, %v, want the second file", m, ok)
	}
}

// If an address is in no known mapping, At must read the maps again. It must return nothing for
// code in memory that no file backs.
func TestAMissingMappingIsLookedFor(t *testing.T) {
	p := started(os.Getpid())
	at := mapCode(t, copied(t, t.TempDir(), "x86_64.elf"), nil)
	p.rest()
	_, ok := p.At(uint64(uintptr(at)))
	if p.await(); !ok { // the look may have taken longer than the patience
		_, ok = p.At(uint64(uintptr(at)))
	}
	if !ok {
		t.Error("the new mapping is not found")
	}
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(code)
	reread(p)
	if m, ok := p.At(uint64(uintptr(unsafe.Pointer(&code[0])))); ok {
		t.Errorf("memory without a file: %+v", m)
	}
}

// If processes have different code at an address, At must return nothing.
func TestProcessesHaveToAgree(t *testing.T) {
	dir := t.TempDir()
	path := copied(t, dir, "x86_64.elf")
	one, again, other := headersAt(t, path), headersAt(t, path), headersOf(t, "aarch64.elf")
	plain, plainAgain := &file{info: one.info}, &file{info: again.info} // without a build ID
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	chmod := &file{info: headersAt(t, path).info}
	if err := os.WriteFile(path, []byte("longer than before"), 0o600); err != nil {
		t.Fatal(err)
	}
	written := &file{info: headersAt(t, path).info}
	for _, c := range []struct {
		name string
		of   []*file
		want bool
	}{
		{"no process", nil, false},
		{"one", []*file{one}, true},
		{"a child with the same code", []*file{one, one}, true},
		{"the same file, read again", []*file{one, again}, true},
		{"the same without a build ID", []*file{plain, plainAgain}, true},
		{"the same after its rights have changed", []*file{plain, chmod}, true},
		{"the same after its contents have changed", []*file{plain, written}, false},
		{"another file", []*file{one, other}, false},
		{"a file that could not be read", []*file{one, nil}, false},
	} {
		p := &Processes{last: time.Now().Add(time.Hour)}
		for i, f := range c.of {
			p.views = append(p.views, view{pid: i + 1, mappings: []mapping{{place: place{start: 0x7f0000000000, end: 0x7f0000001000}, path: "/lib/x.so", file: f}}})
		}
		m, _, found := p.find(0x7f0000000370)
		if (m != nil) != c.want || found != (len(c.of) > 0) {
			t.Errorf("%s: %+v, %v", c.name, m, found)
		}
	}
}

// A worker that is forked after its program was replaced on disk must get the file of its program.
func TestAForkedWorkerHasTheFileOfItsProgram(t *testing.T) {
	f := headersOf(t, "x86_64.elf")
	of := func(pid int, number uint64, f *file) *process {
		return &process{view: view{pid: pid, mappings: []mapping{{place: place{start: 0x7f0000000000, end: 0x7f0000001000, inode: number}, path: "/lib/x.so", file: f}}}}
	}
	l := newLooker()
	l.live[1], l.live[2], l.live[3] = of(1, 7, f), of(2, 7, nil), of(3, 8, nil)
	seen := l.live[2].mappings
	l.shareFiles()
	if l.live[2].mappings[0].file != f || l.live[3].mappings[0].file != nil || seen[0].file != nil {
		t.Errorf("the worker has %+v, another file's %+v; the last view %+v", l.live[2].mappings, l.live[3].mappings, seen)
	}
}

// A file that is overwritten in place must be read again: the processes that have mapped it have
// the new contents, too.
func TestAnOverwrittenFileIsReadAgain(t *testing.T) {
	path := copied(t, t.TempDir(), "x86_64.elf")
	at := mapCode(t, path, nil)
	p := started(os.Getpid())
	addr := uint64(uintptr(at)) + 0x370
	before, ok := p.At(addr)
	if !ok {
		t.Fatal("the mapping is not known")
	}
	data, err := os.ReadFile(arch + "aarch64.elf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	p.looker.checked = time.Time{}
	reread(p)
	if m, ok := p.At(addr); ok {
		t.Errorf("which of the two has printed the address is not known: %+v", m)
	}
	p.looker.clock += lingers
	reread(p)
	if m, ok := p.At(addr); ok && m.ID == before.ID {
		t.Errorf("later: %+v, %v", m, ok)
	}
}

// While output waits to be read, the clock that measures how long mappings linger must not advance.
func TestDoubtsLastWhileOutputIsNotRead(t *testing.T) {
	l := newLooker()
	l.last = time.Now().Add(-time.Minute)
	if l.look(false); l.clock != 0 {
		t.Errorf("output waits: %v", l.clock)
	}
	l.last = time.Now().Add(-time.Minute)
	if l.look(true); l.clock != 2*lastLook {
		t.Errorf("all is read, after a minute in which this process was stopped: %v", l.clock)
	}
}

// After Read has returned text, output must count as waiting until the next Read.
func TestAReaderThatDoesNotReadIsKnown(t *testing.T) {
	p := New()
	r := p.Reader(bytes.NewReader([]byte("text"))).(*reader)
	var states []bool
	for range 2 {
		states = append(states, r.reading.Load())
		r.Read(make([]byte, 10))
	}
	if states = append(states, r.reading.Load()); !slices.Equal(states, []bool{false, false, true}) {
		t.Errorf("reading before the text, after it and at its end: %v", states)
	}
}

// A look that does not end, since a disk does not answer, must not hold up the output.
func TestOutputDoesNotWaitForALookThatHangs(t *testing.T) {
	p := started(os.Getpid())
	p.mu.Lock()
	p.under, p.begun = make(chan struct{}), time.Now().Add(-patience)
	p.mu.Unlock()
	r := p.Reader(bytes.NewReader([]byte("text")))
	if n, err := r.Read(make([]byte, 10)); n != 4 || err != nil {
		t.Error(n, err)
	}
	if m, ok := p.At(1); ok {
		t.Errorf("got %+v at address 1", m)
	}
}

// On AArch64, pages may have 64 KiB. A mapping of code may then begin before its segment, and
// contain code of the preceding segment. If two segments fit, or none, bias must fail.
func TestBiasesWithLargePages(t *testing.T) {
	f := &file{code: []object.Segment{
		{Offset: 0x11370, Addr: 0x21370, FileSize: 0x4000},
		{Offset: 0x15370, Addr: 0x35370, FileSize: 0x30000},
	}}
	const large, start = 0x10000, 0x7f0000000000
	for _, c := range []struct {
		page, offset uint64
		want         uint64 // link address of the first byte; 0: none
	}{
		{4096, 0x11000, 0x21000},
		{4096, 0x12000, 0x22000},
		{4096, 0x16000, 0x36000},
		{4096, 0x15000, 0}, // of either segment
		{4096, 0x10000, 0},
		{large, 0x20000, 0x40000},
	} {
		bias, ok := f.bias(&mapping{place: place{start: start, end: start + large, offset: c.offset}}, c.page)
		if ok != (c.want != 0) || ok && start-bias != c.want {
			t.Errorf("%#x: %#x, %v, want %#x", c.offset, start-bias, ok, c.want)
		}
	}
	one := &file{code: f.code[:1]}
	if bias, ok := one.bias(&mapping{place: place{start: start, offset: 0x10000}}, large); !ok || start-bias != 0x20000 {
		t.Errorf("a mapping that begins 4,976 bytes before the code: %#x, %v", start-bias, ok)
	}
}

// If the list of children is cut within a PID, children must leave out that PID, and report the
// cut.
func TestWhatWasNotReadIsReported(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "task", "7"), 0o777); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("1234567 ", maxChildren-1) + "12345 1234567 "
	if err := os.WriteFile(filepath.Join(dir, "task", "7", "children"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	of := &process{folder: folder}
	pids, cut := of.children()
	if !cut || len(pids) != maxChildren || slices.ContainsFunc(pids, func(pid int) bool { return pid != 1234567 && pid != 12345 }) {
		t.Errorf("%d children, cut: %v: %v", len(pids), cut, pids[max(0, len(pids)-2):])
	}
}

// mapped must return this process's mapping of the file: it must have the file's inode and name.
func TestOwnMappingsNameTheFile(t *testing.T) {
	f, err := os.Open(arch + "x86_64.elf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var state unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &state); err != nil {
		t.Fatal(err)
	}
	m, ok := mapped(f)
	if !ok || m.inode != state.Ino || filepath.Base(m.path) != "x86_64.elf" {
		t.Errorf("got %+v, %v, want inode %d", m, ok, state.Ino)
	}
}

// Addresses that are the same at each start of a program must be marked as predictable.
func TestAddressesThatAreNotRandomAreMarked(t *testing.T) {
	testenv.Need(t, "cat")
	for _, c := range []struct {
		name        string
		personality uintptr
		random      bool
	}{{"usual", 0, true}, {"setarch -R", noRandom, false}} {
		cmd := exec.Command("cat")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := startAs(cmd, c.personality); err != nil {
			t.Fatal(err)
		}
		p := started(cmd.Process.Pid)
		of := p.looker.live[cmd.Process.Pid]
		if of == nil || of.random != c.random {
			t.Errorf("%s: %+v, want random: %v", c.name, of, c.random)
		}
		for i := range of.mappings {
			m := &of.mappings[i]
			if got, ok := p.At(m.start); ok && got.Predictable == c.random {
				t.Errorf("%s: %#x of %s: predictable %v", c.name, m.start, m.path, got.Predictable)
			}
		}
		in.Close()
		cmd.Wait()
	}
	p := New()
	p.views = []view{{random: true, mappings: []mapping{{place: place{start: 0x10000, end: 0x20000}, file: headersOf(t, "x86_64.elf")}}}}
	if got, ok := p.At(0x10370); !ok || !got.Predictable {
		t.Errorf("below 4 GiB: %+v, %v", got, ok)
	}
}

// noRandom is ADDR_NO_RANDOMIZE of linux/personality.h.
const noRandom = 0x0040000

// Processes in another mount namespace must be marked as foreign: their paths may lead to other
// files here.
func TestProcessesWithOtherFoldersAreMarked(t *testing.T) {
	for _, flags := range []uintptr{0, unix.CLONE_NEWNS} {
		cmd := exec.Command("cat")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if cmd.SysProcAttr = (&syscall.SysProcAttr{Cloneflags: flags}); flags != 0 && os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		}
		if err := cmd.Start(); err != nil && flags != 0 {
			testenv.Forbidden(t, "to make a namespace", err)
		} else if err != nil {
			t.Fatal(err)
		}
		p := started(cmd.Process.Pid)
		if of := p.looker.live[cmd.Process.Pid]; of == nil || of.foreign != (flags != 0) {
			t.Errorf("flags %#x: %+v", flags, of)
		}
		in.Close()
		cmd.Wait()
	}
}

// startAs starts a command with a personality.
func startAs(cmd *exec.Cmd, personality uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, personality, 0, 0)
	if errno != 0 {
		return errno
	}
	defer unix.RawSyscall(unix.SYS_PERSONALITY, before, 0, 0)
	return cmd.Start()
}

func TestLinesOfMapsAreParsed(t *testing.T) {
	for line, want := range map[string]mapping{
		"7f31c2a00000-7f31c2a01000 r-xp 00001000 fe:01 1835021                    /opt/shop/lib ledger.so\n": {
			place: place{0x7f31c2a00000, 0x7f31c2a01000, 0x1000, unix.Mkdev(0xfe, 1), 1835021}, path: "/opt/shop/lib ledger.so"},
		"00400000-00401000 r-xp 00000000 103:02 7 /opt/shop/server (deleted)\n": {
			place: place{0x400000, 0x401000, 0, unix.Mkdev(0x103, 2), 7}, path: "/opt/shop/server", deleted: true},
		"7fff1000-7fff2000 r-xp 00000000 00:00 0                  [vdso]\n": {place: place{start: 0x7fff1000, end: 0x7fff2000}},
		"7fff1000-7fff2000 rwxp 00000000 00:00 0 \n":                        {place: place{start: 0x7fff1000, end: 0x7fff2000}},
		"7fff1000-7fff2000 rwxp 00000000 00:00 0\n":                         {place: place{start: 0x7fff1000, end: 0x7fff2000}},
		"7f31c2a00000-7f31c2a01000 r--p 00001000 fe:01 1835021 /lib/a.so\n": {},
		"7f31c2a00000 r-xp 00001000 fe:01 1835021 /lib/a.so\n":              {},
		"7f31c2a00000-7f31c2a01000 r-xp 00001000 fe:01\n":                   {},
		"\n": {},
	} {
		got, code, ok := parseMapping([]byte(line))
		if ok = ok && code; ok != (want.end != 0) || ok && got != want {
			t.Errorf("%q: got %+v, %v", line, got, ok)
		}
	}
}

// A read of the output must also read the maps.
func TestTheMapsAreReadWithTheOutput(t *testing.T) {
	p := started(os.Getpid())
	at := mapCode(t, copied(t, t.TempDir(), "x86_64.elf"), nil)
	p.rest()
	r := p.Reader(bytes.NewReader([]byte("text")))
	if n, err := r.Read(make([]byte, 10)); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	p.await()
	p.last = time.Now().Add(time.Hour) // nothing more is read
	if _, ok := p.At(uint64(uintptr(at))); !ok {
		t.Error("the mapping is not known")
	}
	if m, ok := p.At(1); ok {
		t.Errorf("got %+v at address 1", m)
	}
}
