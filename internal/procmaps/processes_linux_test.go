package procmaps

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
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

// mapCode maps the first page of a file with execution, at an address if it is not nil, and returns
// the address.
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
func headersOf(t *testing.T, fixture string) *file {
	t.Helper()
	f, err := os.Open(arch + fixture)
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

// started returns the processes of a program.
func started(pid int) *Processes {
	p := New()
	p.Start(pid)
	return p
}

// reread reads the maps without regard to the time since the last read.
func reread(p *Processes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read()
}

// An address is answered by the file that the process has mapped there, also if another file has
// its path by now, and by none if the mapping was replaced lately.
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
	if err := os.Rename(copied(t, t.TempDir(), "aarch64.elf"), path); err != nil {
		t.Skip("the folders are on different disks:", err)
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
	p.mu.Lock()
	for i := range p.live[os.Getpid()].mappings {
		if m := &p.live[os.Getpid()].mappings[i]; !m.gone.IsZero() {
			m.gone = m.gone.Add(-lingers)
		}
	}
	p.mu.Unlock()
	reread(p)
	if m, ok := p.At(addr); !ok || m.ID == got.ID {
		t.Errorf("some time later: %+v, %v, want the second file", m, ok)
	}
}

// A mapping that appears is found when an address is in no other. Memory with code that no file has
// is answered by nothing.
func TestAMissingMappingIsLookedFor(t *testing.T) {
	p := started(os.Getpid())
	at := mapCode(t, copied(t, t.TempDir(), "x86_64.elf"), nil)
	p.last, p.took = time.Time{}, 0
	if _, ok := p.At(uint64(uintptr(at))); !ok {
		t.Error("the new mapping is not found")
	}
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(code)
	p.last = time.Time{}
	if m, ok := p.At(uint64(uintptr(unsafe.Pointer(&code[0])))); ok {
		t.Errorf("memory without a file: %+v", m)
	}
}

// The mappings of a process that has ended are kept. If another process has other code at an
// address, nothing is certain.
func TestProcessesHaveToAgree(t *testing.T) {
	one, other := headersOf(t, "x86_64.elf"), headersOf(t, "x86_64.elf")
	of := func(pid int, f *file) *process {
		return &process{pid: pid, mappings: []mapping{{place: place{start: 0x7f0000000000, end: 0x7f0000001000}, path: "/lib/x.so", file: f}}}
	}
	for _, c := range []struct {
		name        string
		live, ended []*process
		want        bool
	}{
		{"no process", nil, nil, false},
		{"an ended one", nil, []*process{of(2, one)}, true},
		{"a child with the same code", []*process{of(2, one), of(3, one)}, nil, true},
		{"another file", []*process{of(2, one), of(3, other)}, nil, false},
		{"another file before", []*process{of(2, one)}, []*process{of(3, other)}, false},
		{"a file that could not be read", []*process{of(2, one)}, []*process{of(3, nil)}, false},
	} {
		p := &Processes{live: make(map[int]*process), ended: c.ended, last: time.Now().Add(time.Hour)}
		for _, l := range c.live {
			p.live[l.pid] = l
		}
		if m, ok := p.At(0x7f0000000370); ok != c.want {
			t.Errorf("%s: %+v, %v", c.name, m, ok)
		}
	}
}

// The device that the kernel names for a mapping of this process is that of the file.
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

// Addresses that are the same at each start of a program are marked.
func TestAddressesThatAreNotRandomAreMarked(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip("no cat:", err)
	}
	for _, c := range []struct {
		name        string
		personality uintptr
		random      bool
	}{{"usual", 0, true}, {"setarch -R", noRandom, false}} {
		cmd := exec.Command(cat)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := startAs(cmd, c.personality); err != nil {
			t.Fatal(err)
		}
		p := started(cmd.Process.Pid)
		of := p.live[cmd.Process.Pid]
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
	p := started(os.Getpid())
	for _, of := range p.live {
		of.random = true
		of.mappings = []mapping{{place: place{start: 0x10000, end: 0x20000}, file: headersOf(t, "x86_64.elf")}}
	}
	if got, ok := p.At(0x10370); !ok || !got.Predictable {
		t.Errorf("below 4 GiB: %+v, %v", got, ok)
	}
}

// noRandom is ADDR_NO_RANDOMIZE of linux/personality.h.
const noRandom = 0x0040000

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
		got, ok := parseMapping([]byte(line))
		if ok != (want.end != 0) || ok && got != want {
			t.Errorf("%q: got %+v, %v", line, got, ok)
		}
	}
}

// The maps are read when text of the output is.
func TestTheMapsAreReadWithTheOutput(t *testing.T) {
	p := started(os.Getpid())
	at := mapCode(t, copied(t, t.TempDir(), "x86_64.elf"), nil)
	p.last = time.Time{}
	r := p.Reader(bytes.NewReader([]byte("text")))
	if n, err := r.Read(make([]byte, 10)); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	p.last = time.Now().Add(time.Hour) // nothing more is read
	if _, ok := p.At(uint64(uintptr(at))); !ok {
		t.Error("the mapping is not known")
	}
	if m, ok := p.At(1); ok {
		t.Errorf("got %+v at address 1", m)
	}
}
