package debuginfod

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"
)

// A scope is an address's part of the network. A redirect must not lead from a wider scope into a
// narrower one: see [scope.mayLead].
type scope int

const (
	public   scope = iota // the Internet
	private               // the site's own network
	loopback              // this machine
	// link-local; clouds serve a machine's credentials there
	linkLocal
	// a host that resolvers read as different addresses
	disguised
)

// mayLead reports whether a server at an address of scope s may redirect to an address whose scope
// is the parameter to. Servers of one private network may redirect to each other, as a mirror and
// its store do. No redirect may lead to a link-local or disguised address.
func (s scope) mayLead(to scope) bool {
	switch to {
	case public:
		return true
	case private:
		return s != public
	case loopback:
		return s == loopback
	}
	return false
}

// narrowest returns the scope that limits the next redirect after servers of scopes a and b. It is
// the wider of the two, which may redirect to fewer addresses. A disguised address counts as
// public.
func narrowest(a, b scope) scope {
	if a == loopback && b == loopback {
		return loopback
	}
	if a == public || b == public || a == disguised || b == disguised {
		return public
	}
	return private
}

// The ranges are parsed at the first check of an address: a run without servers needs none.

// embedded lists the ranges of IPv6 addresses that contain an IPv4 address and lead to it. at is
// the offset of the IPv4 address in the 16 bytes.
var embedded = sync.OnceValue(func() []embedding {
	return []embedding{
		{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64 (RFC 6052)
		{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64 of a site (RFC 8215)
		// IPv4-compatible, withdrawn; scopeOf handles :: and ::1 before this list
		{netip.MustParsePrefix("::/96"), 12},
		{netip.MustParsePrefix("2002::/16"), 2}, // 6to4 (RFC 3056)
	}
})

type embedding struct {
	prefix netip.Prefix
	at     int
}

// reserved lists ranges outside of the public network that netip has no method for.
var reserved = sync.OnceValue(func() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT
		netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("fec0::/10"), // site-local, withdrawn
	}
})

// thisHost is the block of 0.0.0.0. Its addresses reach this machine.
var thisHost = netip.PrefixFrom(netip.IPv4Unspecified(), 8)

// scopeOf returns the scope of a. An invalid address has the scope linkLocal: nothing may redirect
// there.
func scopeOf(a netip.Addr) scope {
	a = a.Unmap().WithZone("")
	if !a.IsLoopback() && !a.IsUnspecified() {
		for _, e := range embedded() {
			if e.prefix.Contains(a) {
				b := a.As16()
				a = netip.AddrFrom4([4]byte(b[e.at:]))
				break
			}
		}
	}
	switch {
	case !a.IsValid(), a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast():
		return linkLocal
	case a.IsLoopback(), a.IsUnspecified(), thisHost.Contains(a):
		return loopback
	case a.IsPrivate(), a.IsMulticast(), slices.ContainsFunc(reserved(), func(p netip.Prefix) bool { return p.Contains(a) }):
		return private
	}
	return public
}

// scopeOfHost returns the scope of an address or a name: if a proxy resolves names, only the name
// is known. The C library and browsers disagree on 127.1, 0x7f.0.0.1, 2130706433, and digits of
// other scripts. Such addresses are disguised.
func scopeOfHost(host string) scope {
	host = strings.ToLower(strings.TrimRight(host, "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return scopeOf(a)
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") || strings.ContainsFunc(host, beyondASCII):
		return disguised
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		return loopback
	case strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || !strings.Contains(host, "."):
		return private
	}
	return public
}

func beyondASCII(r rune) bool { return r > unicode.MaxASCII }

// scopeOfPeer returns the scope of the other end of a connection.
func scopeOfPeer(addr net.Addr) scope {
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return public // public servers may redirect to public addresses only
	}
	return scopeOf(ap.Addr())
}

// A redirectError reports that a redirect into another scope was refused.
type redirectError struct {
	host string
	to   scope
}

func (e *redirectError) Error() string {
	what := map[scope]string{private: "on a private network", loopback: "this machine", linkLocal: "a link-local address",
		disguised: "an address in an unusual form"}[e.to]
	return fmt.Sprintf("redirects to %s, which is %s: refused", e.host, what)
}

// refuse returns a net.Dialer's Control for redirects from s. It checks the address after name
// resolution: a name cannot change its address after the check.
func (s scope) refuse() dialControl {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		to := linkLocal
		if err == nil {
			to = scopeOf(ap.Addr())
		}
		if !s.mayLead(to) {
			return &redirectError{address, to}
		}
		return nil
	}
}
