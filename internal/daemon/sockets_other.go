//go:build !linux

package daemon

import (
	"errors"
	"io/fs"
	"net"
	"syscall"
)

// no control message is requested
const controlSize = 0

// createWithMode returns nil, since here only a chmod after bind can set the mode.
func createWithMode(fs.FileMode) func(network, address string, c syscall.RawConn) error { return nil }

func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

func wrongType(err error) bool { return errors.Is(err, syscall.EPROTOTYPE) }

func prepareDatagrams(net.PacketConn) {}

// receive reads a datagram. Dropped datagrams are not counted.
func receive(s socket, b, _ []byte) (d datagram, err error) {
	n, from, err := s.(net.PacketConn).ReadFrom(b)
	d.n = n
	switch a := from.(type) {
	case *net.UDPAddr:
		d.from = a.AddrPort().Addr().Unmap().WithZone("").String()
	case *net.UnixAddr:
		d.from = a.Name
	}
	return d, err
}

func peerUser(*net.UnixConn) string { return "" }
