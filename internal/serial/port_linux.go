package serial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Major numbers of character devices that are not serial ports:
// Documentation/admin-guide/devices.txt of Linux.
const (
	majorMemory = 1 // /dev/null, /dev/zero, /dev/kmsg
	majorOwn    = 5 // /dev/tty, /dev/console, /dev/ptmx
)

// Names reports whether path may lead to a serial port: a character device that is neither a memory
// device such as /dev/null nor a terminal of this process. It also returns true for a missing path
// in /dev or below /dev/serial, where a port may appear later.
func Names(path string) bool {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		full, err := filepath.Abs(path)
		return err == nil && (strings.HasPrefix(full, "/dev/serial/") || filepath.Dir(full) == "/dev" && !strings.HasPrefix(full, "/dev/std"))
	}
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	var at unix.Stat_t
	if unix.Stat(path, &at) != nil {
		return false
	}
	if major := unix.Major(at.Rdev); major == majorMemory || major == majorOwn {
		return false
	}
	for fd := range 3 {
		var own unix.Stat_t
		if unix.Fstat(fd, &own) == nil && own.Mode&unix.S_IFMT == unix.S_IFCHR && own.Rdev == at.Rdev {
			return false
		}
	}
	return true
}

// list returns the existing ports of adapters and boards.
func list() []string { return listIn("/dev") }

// listIn returns the ports in folder, which is /dev except in tests. It omits ports such as
// /dev/ttyS0, which exist even without a device.
func listIn(folder string) (all []string) {
	for _, pattern := range []string{"ttyUSB*", "ttyACM*", "ttyAMA*", "serial/by-id/*"} {
		found, _ := filepath.Glob(filepath.Join(folder, pattern)) // patterns are valid
		all = append(all, found...)
	}
	return all
}

// open opens the port and configures it to deliver each byte at once. If it returns errOrdinary,
// the file is open but not configured.
func open(path string, rate int) (*os.File, error) {
	// O_NONBLOCK: opening does not wait for a carrier, and Close ends a read.
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	conn, err := file.SyscallConn()
	if err == nil {
		if ctl := conn.Control(func(fd uintptr) { err = configure(int(fd), rate) }); ctl != nil {
			err = ctl
		}
	}
	if err != nil && !errors.Is(err, errOrdinary) {
		file.Close()
		return nil, &fs.PathError{Op: "set up", Path: path, Err: err}
	}
	return file, err
}

// configure sets the port to eight bits at this rate, raw, without flow control.
func configure(fd, rate int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS2)
	switch {
	case errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EINVAL):
		return errOrdinary
	case err != nil:
		return err
	}
	t.Iflag = unix.IGNBRK
	t.Oflag = 0
	t.Lflag = 0
	// CLOCAL: no modem must be ready. Without HUPCL, closing the port does not change the control
	// lines by which adapters reset a board.
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.BOTHER
	t.Ispeed, t.Ospeed = uint32(rate), uint32(rate)
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS2, t); err != nil {
		return fmt.Errorf("the port does not support %d baud: %w", rate, err)
	}
	return nil
}

// isAway reports whether a later attempt to open the port may succeed: the device is not plugged
// in, restarts or is in use.
func isAway(err error) bool {
	for _, away := range []error{unix.ENOENT, unix.ENXIO, unix.ENODEV, unix.EIO, unix.EBUSY} {
		if errors.Is(err, away) {
			return true
		}
	}
	return false
}

// whoMayRead returns a hint for a user who may not read the port at path. If the port's group may
// read it, the hint names the group, which the user can join.
func whoMayRead(path string) string {
	const groupReads = 0o040
	var at unix.Stat_t
	if unix.Stat(path, &at) != nil || at.Mode&groupReads == 0 || at.Gid == 0 {
		return "usually the members of its group may read it; see ls -l " + path
	}
	name := strconv.Itoa(int(at.Gid))
	if g, err := user.LookupGroupId(name); err == nil {
		name = g.Name
	}
	return fmt.Sprintf("the members of group %s may read it: sudo usermod -aG %s $USER, then log in again", name, name)
}
