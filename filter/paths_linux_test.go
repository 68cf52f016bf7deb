package filter

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/symfilter/symfilter/internal/report"
)

// Whatever a path in the log leads to, the filter must not block, and must read only regular files
// outside of /proc, /dev and /sys. The lines must stay unchanged.
func TestPathsOfTheLogLeadToRegularFilesAlone(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(syscall.Mkfifo(at("fifo"), 0o600))
	must(os.Mkdir(at("folder"), 0o700))
	must(syscall.Mknod(at("socket"), syscall.S_IFSOCK|0o600, 0))
	program, err := os.ReadFile(filepath.Join("testdata", "debug", ".build-id", "b0", "b1b2b3b4b5b6b7.debug"))
	must(err)
	must(os.WriteFile(at("libsparse.so"), program, 0o600))
	must(os.Truncate(at("libsparse.so"), 1<<40))
	must(os.WriteFile(at("libzeros.so"), nil, 0o600))
	must(os.Truncate(at("libzeros.so"), 1<<40))
	for link, target := range map[string]string{
		"exe": "/proc/self/exe", "mem": "/proc/self/mem", "up": "../../../../../../../../../proc/self/exe", "proc": "/proc",
		"null": "/dev/null", "tty": "/dev/tty", "watchdog": "/dev/watchdog", "kernel": "/sys/kernel", "twice": at("exe"),
		"tofifo": at("fifo"), "loop": at("loop"), "none": at("nothing"), "good": at("libsparse.so"),
	} {
		must(os.Symlink(target, at(link)))
	}
	for path, want := range map[string]error{
		at("exe"): errDevice, at("mem"): errDevice, at("up"): errDevice, at("proc/self/exe"): errDevice, at("twice"): errDevice,
		at("proc/self/root") + at("libsparse.so"): errDevice, at("null"): errDevice, at("tty"): errDevice, at("watchdog"): errDevice,
		at("kernel/vmcoreinfo"): errDevice, "/dev/zero": errDevice, "/dev/shm/libledger.so": errDevice, "/sys/kernel/notes": errDevice,
		"/proc/kcore": errProc, "/tmp/../dev/mem": errDevice, at("none"): report.ErrNoFile, at("libsparse.so"): nil, at("good"): nil,
	} {
		if err := namedBy(t, path); err != want {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	for _, name := range []string{"fifo", "folder", "socket", "libzeros.so", "tofifo", "loop"} {
		if err := namedBy(t, at(name)); err == nil || err == errDevice {
			t.Errorf("%s: %v, want the reason that it is no regular file, or no ELF file", name, err)
		}
	}
	for _, name := range []string{"fifo", "folder", "socket", "libzeros.so", "tofifo", "loop", "exe", "null", "proc/self/exe", "none", "libsparse.so"} {
		for _, whole := range []bool{false, true} {
			o := resolvingDialects(t)
			o.Dialects.Images, o.Dialects.Whole, o.Dialects.WorkingFolder = nil, whole, dir
			for _, path := range []string{at(name), "./" + name} {
				log := path + "(+0x1154)[0x7f31c2a01154]\n" + path + "(+0x999154)[0x7f31c2a01154]\nend\n"
				if got, _ := filterString(t, o, log, nil); got != log {
					t.Errorf("%s: got\n%s\nwant\n%s", path, got, log)
				}
			}
		}
	}
}

// namedBy opens the file at path as for a path in a log. It returns the reason why the file cannot
// be used.
func namedBy(t *testing.T, path string) error {
	t.Helper()
	o := resolvingDialects(t)
	o.Dialects.Images = nil
	tracer := New(nil, o).tracer
	defer tracer.close()
	tracer.begin()
	return tracer.imageAt(path).Err
}
