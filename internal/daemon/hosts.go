package daemon

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/seldom"
)

// An askers decides which requests an HTTP listener answers. A web page can make a browser send
// requests to any address that the browser can reach. If the page uses a DNS name that resolves to
// the address, the header Host has that name. The header Origin has the origin of the page; only
// browsers send it.
type askers struct {
	warn    func(msg string, args ...any)
	refused seldom.Limiter // messages about requests
}

// allow reports whether a listener with these names may answer a request; if not, it sends the
// refusal.
func (a *askers) allow(w http.ResponseWriter, r *http.Request, n callers) bool {
	status, text := 0, ""
	if host := r.Host; !isCalled(r, n.all()) {
		status = http.StatusMisdirectedRequest
		text = fmt.Sprintf("%.80q is not a name of this listener; to allow it, add it to hosts beside the listener's address in the configuration", host)
	} else if origin, ok := foreignOrigin(r, n.hosts); ok {
		status = http.StatusForbidden
		text = fmt.Sprintf("pages of %.80q may not use this listener; to allow them, add their host to hosts beside the listener's address in the configuration", origin)
	}
	if status == 0 {
		return true
	}
	if times, ok := a.refused.May(time.Now()); ok {
		a.warn("an HTTP request is refused: "+text, "peer", r.RemoteAddr, "times", times)
	}
	refuse(w, status, text)
	return false
}

// isCalled reports whether the Host of a request names the listener. An IP address always does,
// since no resolver can redirect it, and so do localhost and this machine's name. Other hosts must
// be in names, or be the name for which a TLS client has checked the certificate. Pages cannot
// reach a unix socket, and browsers always send a Host.
func isCalled(r *http.Request, names []string) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if _, ok := local.(*net.TCPAddr); !ok || r.Host == "" { // not TCP, or HTTP/1.0 without a Host
		return true
	}
	name := hostName(r.Host)
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if isNamed(name, names) || r.TLS != nil && name != "" && isNamed(name, []string{r.TLS.ServerName}) {
		return true
	}
	own, err := os.Hostname()
	return err == nil && isNamed(name, []string{own})
}

// foreignOrigin returns an Origin of the request that is not allowed. The host and port in Host,
// and the hosts in hosts, are allowed.
func foreignOrigin(r *http.Request, hosts []string) (origin string, foreign bool) {
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) && !isNamed(hostName(u.Host), hosts) {
			return origin, true
		}
	}
	return "", false
}

// hostName returns the host of HOST:PORT or HOST in lower case. It removes the brackets of an IPv6
// address and the final dot of an absolute name.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isNamed reports whether name, a result of hostName, is one of names.
func isNamed(name string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return hostName(n) == name })
}

// callers are the configured names of a listener.
type callers struct {
	address string   // address of the listener
	hosts   []string // values of the hosts keys
}

// all returns the configured names, and the host of the listener's own address.
func (n *callers) all() []string {
	a, err := parseAddress(n.address, false)
	if err != nil || a.network != "tcp" {
		return n.hosts
	}
	return append(slices.Clip(n.hosts), a.name)
}
