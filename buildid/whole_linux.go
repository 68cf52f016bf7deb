package buildid

import (
	"errors"
	"io/fs"
	"sync"
	"syscall"
)

// maxWhole bounds a file that is read whole, in bytes. For a small file, the page faults and tables
// of a mapping cost more than a copy.
const maxWhole = 32 << 10

// wholes are buffers for files that are read whole. The extra byte shows that a file has grown.
var wholes = sync.Pool{New: func() any { return new([maxWhole + 1]byte) }}

// A whole is a small file in memory.
type whole struct {
	buf   *[maxWhole + 1]byte
	data  []byte // the part of buf in use
	state state
}

func (w *whole) free() {
	if w.buf != nil {
		wholes.Put(w.buf)
		w.buf, w.data = nil, nil
	}
}

// readWhole reads the file at path with four system calls. The file must be regular and have at
// most limit and maxWhole bytes. ok is false without an error if another way to open the file may
// succeed.
//
// The type is checked before the file is opened: see openRegular. If another file replaces it
// meanwhile, that file is read only if it has the same size.
func readWhole(path string, limit int64) (w whole, ok bool, err error) {
	fail := func(op string, err error) (whole, bool, error) {
		return whole{}, false, &fs.PathError{Op: op, Path: path, Err: err}
	}
	var st syscall.Stat_t
	if err := retry(func() error { return syscall.Stat(path, &st) }); err != nil {
		return fail("stat", err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return fail("open", errNotRegular)
	}
	if st.Size > min(limit, maxWhole) {
		return w, false, nil
	}
	fd := -1
	if err := retry(func() (err error) {
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|openFlags, 0)
		return err
	}); err != nil {
		return fail("open", err)
	}
	buf := wholes.Get().(*[maxWhole + 1]byte)
	n := 0
	err = retry(func() (err error) {
		n, err = syscall.Pread(fd, buf[:st.Size+1], 0)
		return err
	})
	syscall.Close(fd)
	if err != nil || int64(n) != st.Size {
		wholes.Put(buf)
		return w, false, nil
	}
	return whole{buf, buf[:n], state{st.Size, st.Mtim.Nano(), st.Ino}}, true, nil
}

// retry repeats call while a signal interrupts it.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
