package follow

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A next file that cannot be opened must be reported, and read later. The test uses a lease, which
// also prevents root from opening the file.
func TestUnreadableSuccessorsAreReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\n")
	l := newLog()
	f := unstarted(t, Options{Names: []string{path}, Open: l.open, Notify: l.notify})
	s := turns(t, f, path)
	defer s.close()
	rename(t, path, path+".1")
	write(t, path, "two\n")
	leased, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer leased.Close()
	if _, err := unix.FcntlInt(leased.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		testenv.Missing(t, "a file system with leases: "+err.Error())
	}
	turns(t, f, path)
	turns(t, f, path)
	if got, want := l.messages(), "app.log: resource temporarily unavailable; retrying"; got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
	leased.Close()
	turns(t, f, path)
	if got := l.text(path); got != "one\ntwo\n" {
		t.Errorf("got %q", got)
	}
}
