package written

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// For a pipe and a socket, Unread must count the bytes that the reader has not read. For a file, it
// must return nil.
func TestUnread(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if Unread(file) != nil {
		t.Error("a file has a reader")
	}
	check := func(name string, r, w *os.File, exact bool) {
		t.Helper()
		n := Unread(w)
		if n == nil {
			t.Fatalf("%s: not known", name)
		}
		if got, ok := n(); got != 0 || !ok {
			t.Errorf("%s: %d bytes at first, known %v", name, got, ok)
		}
		if _, err := w.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if got, ok := n(); !ok || got < 1000 || exact && got > 1000 {
			t.Errorf("%s: got %d of 1000 bytes", name, got)
		}
		if _, err := r.Read(make([]byte, 400)); err != nil {
			t.Fatal(err)
		}
		if got, ok := n(); !ok || got < 600 || exact && got > 600 {
			t.Errorf("%s: got %d of 600 bytes", name, got)
		}
		r.Close()
		if got, ok := n(); ok != exact || exact && got != 600 {
			t.Errorf("%s: got %d of 600 bytes without a reader, known %v", name, got, ok)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	check("pipe", r, w, true)

	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	r, err = in.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	w, err = out.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	check("socket", r, w, false) // the system also counts its own overhead
}
