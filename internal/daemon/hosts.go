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

// An askers refuses requests of foreign web pages to an HTTP listener. A page can make a browser
// send requests to any address. If the page's DNS name resolves to the listener, the header Host
// has that name. The header Origin, which only browsers send, has the page's origin.
type askers struct {
	warn    func(msg string, args ...any)
	refused seldom.Limiter
}

// allow reports whether the listener may answer the request. If not, allow refuses the request.
func (a *askers) allow(w http.ResponseWriter, r *http.Request, n callers) bool {
	status, text := 0, ""
	if host := r.Host; !isCalled(r, n.all()) {
		status = http.StatusMisdirectedRequest
		text = fmt.Sprintf("%.80q is not a name of this listener; to allow this name, add it to the key hosts of this listener in the configuration", host)
	} else if origin, ok := foreignOrigin(r, n.hosts); ok {
		status = http.StatusForbidden
		text = fmt.Sprintf("pages of %.80q may not use this listener; to allow these pages, add their host to the key hosts of this listener in the configuration", origin)
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

// isCalled reports whether the Host of a request names the listener. An IP address, localhost and
// this machine's name are always allowed, since no page controls what these names resolve to. Other
// hosts must be in names, or in the certificate that a TLS client has checked. Pages cannot reach a
// unix socket, and browsers always send a Host.
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

// foreignOrigin returns the first Origin of the request that is not allowed; foreign is false if
// all are allowed. The host in Origin must be the request's own Host, or in hosts.
func foreignOrigin(r *http.Request, hosts []string) (origin string, foreign bool) {
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) && !isNamed(hostName(u.Host), hosts) {
			return origin, true
		}
	}
	return "", false
}

// hostName returns the host of HOST:PORT or HOST, in lower case. It removes the brackets of an IPv6
// address, and a final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isNamed reports whether name is in names. name is a result of hostName.
func isNamed(name string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return hostName(n) == name })
}

// callers has the names by which requests may call a listener.
type callers struct {
	address string   // address of the listener
	hosts   []string // values of the hosts keys
}

// all returns the configured names, and the host of a TCP address.
func (n *callers) all() []string {
	a, err := parseAddress(n.address, false)
	if err != nil || a.network != "tcp" {
		return n.hosts
	}
	return append(slices.Clip(n.hosts), a.name)
}
