package service

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Sockets are the sockets that the service manager has opened for this process: see
// sd_listen_fds(3). They remain open, and keep their queues, even without an open listener. They
// are safe for concurrent use.
type Sockets struct {
	all []socket
}

type socket struct {
	name   string // FileDescriptorName= of the unit; not unique
	stream bool   // the socket accepts connections; otherwise it receives datagrams
	file   *os.File
}

const (
	firstSocket = 3   // SD_LISTEN_FDS_START
	maxSockets  = 256 // descriptors; a unit with more is a mistake
	noName      = "unknown"
)

// Names returns the names of the sockets, without duplicates, in the order of their descriptors.
func (s *Sockets) Names() (all []string) {
	for _, k := range s.all {
		if !slices.Contains(all, k.name) {
			all = append(all, k.name)
		}
	}
	return all
}

// Listeners returns listeners on the stream sockets of this name, one for each ListenStream= of the
// unit. The caller closes the listeners, but the sockets stay open and queue connections. A later
// call returns new listeners on these sockets.
func (s *Sockets) Listeners(name string) (all []net.Listener, err error) {
	for _, k := range s.all {
		if k.name != name || !k.stream {
			continue
		}
		l, err := net.FileListener(k.file)
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, fmt.Errorf("socket %q of the service manager: %w", name, err)
		}
		all = append(all, l)
	}
	return all, s.missing(name, "ListenStream", len(all))
}

// PacketConns returns connections for the datagram sockets of this name, one for each
// ListenDatagram= of the unit. The caller closes the connections, but the sockets stay open. A
// later call returns new connections for these sockets.
func (s *Sockets) PacketConns(name string) (all []net.PacketConn, err error) {
	for _, k := range s.all {
		if k.name != name || k.stream {
			continue
		}
		c, err := net.FilePacketConn(k.file)
		if err != nil {
			for _, c := range all {
				c.Close()
			}
			return nil, fmt.Errorf("socket %q of the service manager: %w", name, err)
		}
		all = append(all, c)
	}
	return all, s.missing(name, "ListenDatagram", len(all))
}

// Datagrams reports whether a datagram socket has this name.
func (s *Sockets) Datagrams(name string) bool {
	return slices.ContainsFunc(s.all, func(k socket) bool { return k.name == name && !k.stream })
}

// missing returns the error for a name without sockets of the wanted kind. n is the number of
// sockets found: if it is not 0, missing returns nil.
func (s *Sockets) missing(name, kind string, n int) error {
	switch {
	case n > 0:
		return nil
	case len(s.all) == 0:
		return fmt.Errorf("no socket %q: the service manager has passed none; start the service with a socket unit that has FileDescriptorName=%s", name, name)
	case slices.Contains(s.Names(), name):
		return fmt.Errorf("socket %q of the service manager has the wrong type: its unit needs %s=", name, kind)
	default:
		return fmt.Errorf("no socket %q: the service manager has passed %s", name, strings.Join(s.Names(), ", "))
	}
}

// Close closes the sockets. Listeners and connections remain open.
func (s *Sockets) Close() {
	for _, k := range s.all {
		k.file.Close()
	}
	s.all = nil
}

// inheritedNames returns the names of the sockets in the environment for the process pid, in the
// order of their descriptors.
func inheritedNames(getenv func(string) string, pid int) ([]string, error) {
	if getenv("LISTEN_PID") != strconv.Itoa(pid) {
		return nil, nil // meant for the program that started this one
	}
	fds := getenv("LISTEN_FDS")
	n, err := strconv.Atoi(fds)
	if err != nil || n < 0 || n > maxSockets {
		return nil, fmt.Errorf("LISTEN_FDS=%s: not a number of sockets from 0 to %d", fds, maxSockets)
	}
	var names []string
	if all := getenv("LISTEN_FDNAMES"); all != "" {
		names = strings.Split(all, ":")
		if len(names) != n {
			return nil, fmt.Errorf("LISTEN_FDNAMES=%s: %d names for %d sockets", all, len(names), n)
		}
	}
	for len(names) < n {
		names = append(names, noName)
	}
	return names, nil
}
