package service

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Inherited returns the sockets that the service manager has passed, perhaps none, and removes them
// from the environment. It must be called once, before anything else opens files: only the
// environment shows which descriptors are the sockets.
func Inherited() (*Sockets, error) {
	names, err := inheritedNames(os.Getenv, os.Getpid())
	for _, name := range []string{"LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "LISTEN_PIDFDID"} {
		os.Unsetenv(name)
	}
	if err != nil {
		return nil, fmt.Errorf("sockets of the service manager: %w", err)
	}
	s := &Sockets{}
	for i, name := range names {
		k, err := inherit(firstSocket+i, name)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("socket %q of the service manager, descriptor %d: %w", name, firstSocket+i, err)
		}
		s.all = append(s.all, k)
	}
	return s, nil
}

// inherit returns the socket with descriptor fd, and marks it as not inherited by child processes.
func inherit(fd int, name string) (socket, error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return socket{}, fmt.Errorf("not a socket: %w", err)
	}
	unix.CloseOnExec(fd)
	switch kind {
	case unix.SOCK_STREAM:
		listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		if err != nil {
			return socket{}, err
		}
		if listens == 0 {
			return socket{}, fmt.Errorf("a connection, not a listening socket: its unit needs Accept=no")
		}
	case unix.SOCK_DGRAM:
	default:
		return socket{}, fmt.Errorf("its unit has neither ListenStream= nor ListenDatagram=")
	}
	return socket{name, kind == unix.SOCK_STREAM, os.NewFile(uintptr(fd), name)}, nil
}
