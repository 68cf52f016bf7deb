package testenv

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Port makes a pseudo-terminal in place of a serial port, and links path to the program's end.
// It returns the device's end, which is closed at the end of the test. The pseudo-terminal
// changes no bytes.
func Port(t testing.TB, path string) (device *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	device = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { device.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	// A pseudo-terminal edits its input as lines until it is raw.
	if err := unix.IoctlSetTermios(fd, unix.TCSETS2, &unix.Termios{Cflag: unix.CS8 | unix.CREAD | unix.B38400}); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(fmt.Sprintf("/dev/pts/%d", n), path); err != nil {
		t.Fatal(err)
	}
	return device
}
