package daemon

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// receiveBuffer is the requested size of a UDP socket's buffer: a crashing device sends several
// thousand lines at once. net.core.rmem_max bounds the size.
const receiveBuffer = 8 << 20

// createWithMode returns a Control for net.ListenConfig that sets the mode before bind creates the
// socket's file. With a chmod after bind, other users could connect in between.
func createWithMode(mode fs.FileMode) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), uint32(mode)) }); e != nil {
			return e
		}
		return err
	}
}

func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// wrongType reports whether a unix socket has another type than the connecting socket.
func wrongType(err error) bool { return errors.Is(err, syscall.EPROTOTYPE) }

// prepareDatagrams enlarges a UDP socket's buffer, and requests the number of dropped datagrams.
// From a unix socket, it requests the senders' credentials. A refusal only means uncounted drops or
// unnamed senders.
func prepareDatagrams(c net.PacketConn) {
	switch c := c.(type) {
	case *net.UDPConn:
		c.SetReadBuffer(receiveBuffer)
		setOption(c, unix.SO_RXQ_OVFL)
	case *net.UnixConn:
		setOption(c, unix.SO_PASSCRED)
	}
}

func setOption(c syscall.Conn, option int) {
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, 1) })
	}
}

// bytes for the control messages of a datagram
var controlSize = unix.CmsgSpace(4) + unix.CmsgSpace(unix.SizeofUcred)

func receive(s socket, b, control []byte) (d datagram, err error) {
	var flags, controls int
	switch c := s.(type) {
	case *net.UDPConn:
		n, m, f, from, err := c.ReadMsgUDPAddrPort(b, control)
		if err != nil {
			return d, err
		}
		d.n, controls, flags, d.from = n, m, f, from.Addr().Unmap().WithZone("").String()
	case *net.UnixConn:
		n, m, f, from, err := c.ReadMsgUnix(b, control)
		if err != nil {
			return d, err
		}
		if d.n, controls, flags = n, m, f; from != nil {
			d.from = from.Name
		}
	}
	d.cut = flags&unix.MSG_TRUNC != 0
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	if err != nil {
		return d, nil // the datagram itself is whole
	}
	for _, m := range messages {
		switch {
		case m.Header.Level != unix.SOL_SOCKET:
		case m.Header.Type == unix.SO_RXQ_OVFL && len(m.Data) >= 4:
			d.dropped, d.counts = binary.NativeEndian.Uint32(m.Data), true
		case m.Header.Type == unix.SCM_CREDENTIALS && d.from == "":
			if cred, err := unix.ParseUnixCredentials(&m); err == nil {
				d.from = strconv.Itoa(int(cred.Uid))
			}
		}
	}
	return d, nil
}

// peerUser returns the uid of the connected process, or "" if it is unknown.
func peerUser(c *net.UnixConn) (uid string) {
	raw, err := c.SyscallConn()
	if err != nil {
		return ""
	}
	raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = strconv.Itoa(int(cred.Uid))
		}
	})
	return uid
}
