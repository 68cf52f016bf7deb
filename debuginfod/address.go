package debuginfod

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// nat64 holds IPv4 addresses in its last four bytes (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// reserved are the ranges that are not on the public network and that netip has no method for.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carriers' own
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("fec0::/10"), // site-local, withdrawn
}

// isPrivate reports whether a is an address of this host, its link or its site: a server of the public network has no business
// sending us there.
func isPrivate(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return true
		}
	}
	return a.IsUnspecified() || a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || !a.IsValid()
}

// isPrivateHost is isPrivate for a host that need not be an address: where a proxy looks it up, only its name is known.
func isPrivateHost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return isPrivate(a)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".local") ||
		strings.HasSuffix(host, ".internal") || !strings.Contains(host, ".")
}

// A privateError refuses a redirect from a public server.
type privateError struct{ host string }

func (e *privateError) Error() string {
	return fmt.Sprintf("redirects to %s, which is on a private network: refused", e.host)
}

// refusePrivate is a net.Dialer's Control: it sees the address that a name was resolved to, so a name that changes its
// address gets no further.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || isPrivate(ap.Addr()) {
		return &privateError{address}
	}
	return nil
}

// privatePeer reports whether addr is of a private network.
func privatePeer(addr net.Addr) bool {
	ap, err := netip.ParseAddrPort(addr.String())
	return err == nil && isPrivate(ap.Addr())
}
