package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

// staleTime bounds the check whether a process listens on an existing unix socket.
const staleTime = time.Second

// listen opens the socket of an address other than systemd. release removes the socket's file, and
// is nil for a socket without a file.
func (a address) listen(to admission) (s socket, release func(), err error) {
	unix := a.network == "unix" || a.network == "unixgram"
	mode := to.mode
	if mode == 0 {
		mode = defaultSocketMode
	}
	conf := net.ListenConfig{}
	if unix {
		if err := a.clear(); err != nil {
			return nil, nil, fmt.Errorf("listen on %v: %w", a, err)
		}
		conf.Control = createWithMode(fs.FileMode(mode))
	}
	switch a.network {
	case "tcp", "unix":
		l, err := conf.Listen(context.Background(), a.network, a.name)
		if err != nil {
			return nil, nil, plainListenError(a, err)
		}
		s = l.(socket)
	default:
		c, err := conf.ListenPacket(context.Background(), a.network, a.name)
		if err != nil {
			return nil, nil, plainListenError(a, err)
		}
		prepareDatagrams(c)
		s = c
	}
	if !unix {
		return s, nil, nil
	}
	if l, ok := s.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false) // release checks that the file is ours
	}
	release, err = a.own(fs.FileMode(mode))
	if err != nil {
		s.Close()
		return nil, nil, fmt.Errorf("listen on %v: %w", a, err)
	}
	return s, release, nil
}

// plainListenError returns err with the address, but without the text of a net.OpError, which also
// has the address.
func plainListenError(a address, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("listen on %v: %w", a, err)
}

// own sets the mode of the socket's file, since the umask may have removed bits. The function
// release removes the file, unless another file has replaced it.
func (a address) own(mode fs.FileMode) (release func(), err error) {
	if err := os.Chmod(a.name, mode); err != nil {
		return nil, err
	}
	made, err := os.Lstat(a.name)
	if err != nil {
		return nil, err
	}
	return func() {
		if now, err := os.Lstat(a.name); err == nil && os.SameFile(made, now) {
			os.Remove(a.name) // the next start removes a remaining file
		}
	}, nil
}

// clear removes a socket that a dead process has left at a's path.
func (a address) clear() error {
	info, err := os.Lstat(a.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("the file at this path is not a socket, and is not replaced: remove the file, or choose another path")
	}
	for _, network := range []string{"unix", "unixgram"} {
		c, err := net.DialTimeout(network, a.name, staleTime)
		if err == nil {
			c.Close()
			return errors.New("another process listens on this socket: choose another path, or stop that process")
		}
		if !refused(err) && !wrongType(err) {
			return fmt.Errorf("cannot check whether another process listens on this socket: %w", err)
		}
	}
	return os.Remove(a.name)
}
