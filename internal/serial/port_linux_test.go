package serial

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/internal/testenv"
)

// plug makes a pseudo-terminal, and a link at path to its slave side. It returns the master side,
// which plays the device.
func plug(t *testing.T, path string) *os.File {
	t.Helper()
	os.Remove(path)
	return testenv.Port(t, path)
}

// unplug removes the link at path, and closes the master side of its terminal.
func unplug(t *testing.T, device *os.File, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := device.Close(); err != nil {
		t.Fatal(err)
	}
}

// A reading collects the bytes, messages and error of a port.
type reading struct {
	port    *Port
	bytes   chan []byte
	reports chan string
	err     chan error
}

func read(t *testing.T, path string) *reading {
	r := newReading(t, path)
	r.start()
	return r
}

func newReading(t *testing.T, path string) *reading {
	r := &reading{bytes: make(chan []byte, 64), reports: make(chan string, 64), err: make(chan error, 1)}
	r.port = New(path, DefaultRate, func(s string) { r.reports <- s })
	r.port.again, r.port.others = time.Millisecond, func() []string { return nil }
	t.Cleanup(func() { r.port.Close() })
	return r
}

// start reads the port until an error, in the background.
func (r *reading) start() {
	go func() {
		for {
			b := make([]byte, 4096)
			n, err := r.port.Read(b)
			if err != nil {
				r.err <- err
				return
			}
			r.bytes <- b[:n]
		}
	}()
}

// want waits until the port has read exactly these bytes.
func (r *reading) want(t *testing.T, want string) {
	t.Helper()
	var got []byte
	for !bytes.Equal(got, []byte(want)) {
		if len(got) >= len(want) || !bytes.HasPrefix([]byte(want), got) {
			t.Fatalf("read %q, want %q", got, want)
		}
		select {
		case b := <-r.bytes:
			got = append(got, b...)
		case err := <-r.err:
			t.Fatalf("read %q, then %v, want %q", got, err, want)
		}
	}
}

func (r *reading) wantReport(t *testing.T, want string) {
	t.Helper()
	if got := <-r.reports; got != want {
		t.Errorf("reported %q, want %q", got, want)
	}
}

const noPorts = "this machine has no serial adapter, such as /dev/ttyUSB0 or /dev/ttyACM0"

func TestADeviceThatIsUnpluggedIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ttyUSB0")
	r := read(t, path)
	r.wantReport(t, "no such file or directory; "+noPorts+"; retrying every second, until Ctrl-C")
	for range 3 {
		device := plug(t, path)
		r.wantReport(t, "open")
		// The port must deliver control characters and line ends unchanged.
		const text = "rst:0x1\r\n\x03\x04\x11\x13\x1b[0;31mE (12)\xff\x00\n"
		io.WriteString(device, text)
		r.want(t, text)
		unplug(t, device, path)
		r.wantReport(t, "the device was disconnected; retrying every second, until Ctrl-C")
	}
	r.port.Close()
	if err := <-r.err; err != io.EOF {
		t.Errorf("Read returned %v after Close, want io.EOF", err)
	}
}

// A missing permission must be reported only if it lasts: a new device gets its mode a moment after
// it appears.
func TestAPortThatStaysLockedIsReported(t *testing.T) {
	r := newReading(t, filepath.Join(t.TempDir(), "ttyUSB0"))
	device := plug(t, r.port.path)
	denied := &fs.PathError{Op: "open", Path: r.port.path, Err: unix.EACCES}
	gone := &fs.PathError{Op: "open", Path: r.port.path, Err: unix.ENOENT}
	lacks := []error{nil, gone, denied, nil, gone, denied, denied, denied, gone, gone, denied, denied, nil}
	r.port.open = func(path string, rate int) (*os.File, error) {
		if len(lacks) == 0 {
			return open(path, rate)
		}
		err := lacks[0]
		if lacks = lacks[1:]; err != nil {
			return nil, err
		}
		return os.Open(os.DevNull) // returns EOF at once
	}
	r.start()
	const away = "the device was disconnected; retrying every second, until Ctrl-C"
	const locked = "permission denied; retrying every second, until Ctrl-C"
	for _, want := range []string{away, "open", away, locked, "open", away, "open"} {
		r.wantReport(t, want)
	}
	io.WriteString(device, "> ")
	r.want(t, "> ")
}

// If a port does not appear in time, Read must return an error that lists the existing ports. For a
// port that was open before, Read must wait without a limit.
func TestAPortThatIsNeverThereIsGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ttyUSB0")
	tries := 0
	gone := &fs.PathError{Op: "open", Path: path, Err: unix.ENOENT}
	var reports []string
	p := New(path, DefaultRate, func(s string) { reports = append(reports, s) })
	p.again, p.others = time.Millisecond, func() []string { return []string{"/dev/ttyACM0", "/dev/ttyUSB1"} }
	p.open = func(string, int) (*os.File, error) { tries++; return nil, gone }
	p.GiveUp(5 * time.Millisecond)
	_, err := p.Read(make([]byte, 10))
	if want := "open " + path + ": no such file or directory; ports here: /dev/ttyACM0, /dev/ttyUSB1"; err == nil || err.Error() != want || tries != 6 {
		t.Errorf("Read returned %v after %d tries, want %s after 6", err, tries, want)
	}
	if want := []string{"no such file or directory; ports here: /dev/ttyACM0, /dev/ttyUSB1; retrying every second, for 5ms"}; !slices.Equal(reports, want) {
		t.Errorf("reported %q, want %q", reports, want)
	}

	r := newReading(t, path)
	r.port.GiveUp(0)
	device := plug(t, path)
	r.start()
	io.WriteString(device, "> ")
	r.want(t, "> ")
	unplug(t, device, path)
	r.wantReport(t, "the device was disconnected; retrying every second, until Ctrl-C")
	io.WriteString(plug(t, path), "> ")
	r.want(t, "> ")
}

func TestPortsOfAdaptersAreListed(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "serial", "by-id"), 0o700); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"ttyUSB0", "ttyUSB1", "ttyACM0", "serial/by-id/usb-Espressif", "ttyS0", "null"} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		want = append(want, path)
	}
	if got := listIn(folder); !slices.Equal(got, want[:4]) {
		t.Errorf("got %q, want %q", got, want[:4])
	}
}

// After a hang-up, opening the port may succeed although each read returns EOF at once. Read must
// pause before it opens the port again.
func TestAPortThatEndsAtOnceIsNotOpenedAllTheTime(t *testing.T) {
	r := newReading(t, filepath.Join(t.TempDir(), "ttyS0"))
	r.port.again = time.Hour
	opened := make(chan bool, 10)
	r.port.open = func(string, int) (*os.File, error) {
		opened <- true
		return os.Open(os.DevNull)
	}
	r.start()
	r.wantReport(t, "the device was disconnected; retrying every second, until Ctrl-C")
	r.port.Close()
	if err := <-r.err; err != io.EOF || len(opened) != 1 {
		t.Errorf("opened %d times, then Read returned %v; want once and io.EOF", len(opened), err)
	}
}

func TestCloseEndsARead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ttyUSB0")
	device := plug(t, path)
	r := read(t, path)
	io.WriteString(device, "> ")
	r.want(t, "> ")
	r.port.Close()
	if err := <-r.err; err != io.EOF {
		t.Errorf("Read returned %v, want io.EOF", err)
	}
}

func TestThePortIsRawAndHasTheRate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ttyUSB0")
	device := plug(t, path)
	for _, rate := range []int{9600, 74880, 115200, 2000000} { // 74880: ESP8266's boot loader
		file, err := open(path, rate)
		if err != nil {
			t.Fatal(err)
		}
		fd := int(device.Fd())
		termios, err := unix.IoctlGetTermios(fd, unix.TCGETS2)
		if err != nil {
			t.Fatal(err)
		}
		if int(termios.Ospeed) != rate || int(termios.Ispeed) != rate {
			t.Errorf("the port is at %d and %d baud, want %d", termios.Ispeed, termios.Ospeed, rate)
		}
		if termios.Lflag != 0 || termios.Oflag != 0 || termios.Cflag&unix.CSIZE != unix.CS8 || termios.Cflag&unix.HUPCL != 0 {
			t.Errorf("the port is set to %+v", termios)
		}
		file.Close()
	}
}

func TestAFileThatIsNotAPortEnds(t *testing.T) {
	p := New("/dev/null", DefaultRate, func(s string) { t.Errorf("reported %q", s) })
	if n, err := p.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("Read returned %d and %v, want 0 and io.EOF", n, err)
	}
}

func TestAPortThatMayNotBeOpenedIsAnError(t *testing.T) {
	p := New(t.TempDir()+"/file/tty", DefaultRate, func(s string) { t.Errorf("reported %q", s) })
	if err := os.WriteFile(filepath.Dir(p.path), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(make([]byte, 10)); err == nil || err == io.EOF {
		t.Errorf("Read returned %v, want an error", err)
	}
}

func TestAPortWithoutRightsNamesTheGroup(t *testing.T) {
	p := New("/dev/ttyUSB7", DefaultRate, func(s string) { t.Errorf("reported %q", s) })
	p.open = func(string, int) (*os.File, error) {
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: unix.EACCES}
	}
	_, err := p.Read(make([]byte, 10))
	if want := "open /dev/ttyUSB7: permission denied; usually the members of its group may read it; see ls -l /dev/ttyUSB7"; err == nil || err.Error() != want {
		t.Errorf("Read returned %v, want %s", err, want)
	}
}

func TestTheGroupThatMayReadAPortIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ttyUSB0")
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	os.Chown(path, -1, 20) // Debian's group dialout; only root can set it
	var at unix.Stat_t
	if err := unix.Stat(path, &at); err != nil {
		t.Fatal(err)
	}
	want := "usually the members of its group may read it; see ls -l " + path
	if group, err := user.LookupGroupId(strconv.Itoa(int(at.Gid))); at.Gid != 0 && err == nil {
		want = "the members of group " + group.Name + " may read it: sudo usermod -aG " + group.Name + " $USER, then log in again"
	}
	if got := whoMayRead(path); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhichPathsAreSerialPorts(t *testing.T) {
	folder := t.TempDir()
	port, regular := filepath.Join(folder, "port"), filepath.Join(folder, "regular")
	plug(t, port)
	if err := os.WriteFile(regular, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var are []string
	for _, path := range []string{port, regular, folder, filepath.Join(folder, "missing"),
		"/dev/null", "/dev/tty", "/dev/stdin", "/dev/ttyNone", "/dev/serial/by-id/none", "/dev/shm/none.log", "/dev/fd/999", "/dev/stdnone"} {
		if Names(path) {
			are = append(are, path)
		}
	}
	if want := []string{port, "/dev/ttyNone", "/dev/serial/by-id/none"}; !slices.Equal(are, want) {
		t.Errorf("serial ports are %q, want %q", are, want)
	}
}
