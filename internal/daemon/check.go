package daemon

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/symfilter/symfilter/filter"
)

// peerField is replaced in the path of a file output by the peer's name, or by the followed file's
// base name.
const peerField = "{peer}"

// compare reports contradictory keys and impossible values.
func (p *parser) compare(c *Config) {
	if p.spent {
		return
	}
	p.admin(&c.Admin)
	p.service(&c.Service)
	for i, u := range c.Symbols.DebuginfodURLs.List {
		p.serverURL(u, "symbols.debuginfod_urls", i)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Pipelines)) {
		one := c.Pipelines[name]
		p.pipeline(&one, "pipelines."+name)
	}
	p.together(c)
}

func (p *parser) given(path, name string) *yaml.Node { return p.at[join(path, name)] }

// item returns the YAML node of item i of the list at path. If the parser did not keep that node,
// it returns the node of the list's key.
func (p *parser) item(path string, i int) *yaml.Node {
	return p.keyAt(p.at[path], path+"["+strconv.Itoa(i)+"]")
}

func (p *parser) admin(a *Admin) {
	p.useless("admin", p.sections[kindOf[Admin]()])
	if a.Listen != "" {
		p.listener("admin", "listen", a.Listen, false, a.AllowRemote, a.TLS)
	}
	p.halves("admin.tls", a.TLS, true)
	p.hosts("admin", a.Hosts)
}

func (p *parser) service(s *Service) {
	if n := p.at["service"]; n != nil && p.at["pipelines"] == nil && p.given("service", "listen") == nil {
		p.fault(n, "service", "has no listener, and there are no pipelines: set listen")
	}
	p.useless("service", p.sections[kindOf[Service]()])
	if s.Listen != "" {
		p.listener("service", "listen", s.Listen, false, s.AllowRemote, s.TLS)
		if n := p.given("service", "listen"); n != nil && len(s.paths()) == 0 && p.complete("service") {
			p.fault(n, "service.listen", "no protocol is on: set symbolize, profile, mozilla, symbolicator or debuginfod to true")
		}
	}
	p.halves("service.tls", s.TLS, true)
	p.hosts("service", s.Hosts)
}

func (p *parser) hosts(path string, names []string) {
	for i, name := range names {
		if u, err := url.Parse("//" + name); err != nil || u.Hostname() != name {
			p.fault(p.item(join(path, "hosts"), i), join(path, "hosts"), "%q is not the name of a host: write the name without scheme and port, as in logs.example", printable(name))
		}
	}
}

func (p *parser) pipeline(c *Pipeline, path string) {
	in, out := path+".input", path+".output"
	if p.at[in] != nil && !p.isFaulty(in) {
		p.one(in, p.sections[kindOf[Input]()])
		p.input(&c.Input, in)
	}
	if p.at[out] != nil && !p.isFaulty(out) {
		p.one(out, p.sections[kindOf[Output]()])
		p.output(c, out)
	}
	for i, m := range c.Filter.PrefixMap {
		if from, _, ok := strings.Cut(m, "="); !ok || from == "" {
			p.fault(p.item(path+".filter.prefix_map", i), path+".filter.prefix_map", "%q is not of the form OLD=NEW", printable(m))
		}
	}
	if waits := path + ".patience"; c.Patience.Never {
		for _, name := range []string{"local", "servers", "per_minute"} {
			if n := p.given(waits, name); n != nil {
				p.fault(n, join(waits, name), "has no effect if never is true: remove one of the two keys")
			}
		}
	}
}

// one reports a fault unless exactly one of the keys in s.One is set in the section at path. If
// exactly one is set, it also reports the keys of the section that have no effect.
func (p *parser) one(path string, s *Section) {
	var found []string
	for _, name := range s.One {
		n := p.given(path, name)
		if n == nil {
			continue
		}
		if found = append(found, name); len(found) > 1 {
			p.fault(n, join(path, name), "both %s and this key are set: keep one, or write two pipelines", found[0])
		}
	}
	if len(found) == 0 {
		n := p.at[path]
		p.missing = append(p.missing, Fault{Line: n.Line, Column: n.Column, Key: path, Problem: "not given: set one of " + listed(s.One, "and")})
	} else if len(found) == 1 {
		p.useless(path, s)
	}
}

// useless reports each key of a section that is set but has no effect. If a key has a list With, it
// has an effect only if a key in that list is also set.
func (p *parser) useless(path string, s *Section) {
	for _, k := range s.Keys {
		n := p.given(path, k.Name)
		if n == nil || k.With == nil {
			continue
		}
		if !slices.ContainsFunc(k.With, func(name string) bool { return p.given(path, name) != nil }) {
			p.fault(n, join(path, k.Name), "has no effect without %s: remove the key", listed(k.With, "or"))
		}
	}
}

func (p *parser) input(c *Input, path string) {
	for name, patterns := range map[string][]string{"files": c.Files, "exclude_path": c.ExcludePath} {
		for i, pattern := range patterns {
			if _, err := filepath.Match(pattern, ""); err != nil {
				p.fault(p.item(join(path, name), i), join(path, name), "%q is not a valid pattern: a [ has no ], or it ends with \\; write \\[ for a bracket", printable(pattern))
			}
		}
	}
	if n := p.given(path, "stdin"); n != nil && !c.Stdin && p.complete(path+".stdin") {
		p.fault(n, path+".stdin", "false has no effect: remove the key")
	}
	network, _, _ := strings.Cut(c.Listen, ":")
	datagrams := network == "udp" || network == "unixgram"
	for name, address := range map[string]string{"listen": c.Listen, "http": c.HTTP, "journal_upload": c.Journal} {
		if address != "" {
			p.listener(path, name, address, datagrams && name == "listen", c.AllowRemote, c.TLS)
		}
	}
	if n := p.given(path, "framing"); n != nil && datagrams {
		p.fault(n, path+".framing", "has no effect on datagrams, each of which is one message: remove the key")
	}
	if n := p.given(path, "path"); n != nil && !strings.HasPrefix(c.Path, "/") {
		p.fault(n, path+".path", "%q must begin with /, like /v1/filter", printable(c.Path))
	}
	if n := p.given(path, "key"); n != nil && c.Key != "" {
		if _, err := filter.ProcessKey(c.Key); err != nil {
			p.fault(n, path+".key", "%v", err)
		}
	}
	p.halves(path+".tls", c.TLS, true)
	p.hosts(path, c.Hosts)
}

// listener checks the address and settings of a listener: which peers can reach it, and whether tls
// and mode have an effect.
func (p *parser) listener(path, name, address string, datagrams, remote bool, tls *TLS) {
	n, key := p.given(path, name), join(path, name)
	a, err := parseAddress(address, datagrams)
	switch {
	case err != nil:
		p.fault(n, key, "%v", err)
		return
	case a.network == "tcp" || a.network == "udp":
		if _, port, err := net.SplitHostPort(a.name); err == nil {
			if _, err := net.LookupPort(a.network, port); err != nil {
				p.fault(n, key, "%q has no port from 0 to 65535", printable(address))
			}
		}
		if tls == nil || datagrams {
			if err := a.mayListen(admission{allowRemote: remote}); err != nil {
				p.fault(n, key, "%v", err)
			}
		}
	}
	if tls != nil && (datagrams || a.network == "unix") {
		p.fault(p.given(path, "tls"), path+".tls", "has no effect with %s: remove the key", a.network)
	}
	if mode := p.given(path, "mode"); mode != nil && !strings.HasPrefix(a.network, "unix") {
		p.fault(mode, path+".mode", "has no effect with %s: remove the key", a.network)
	}
}

// halves reports a certificate without a key, or a key without a certificate. A server needs both.
func (p *parser) halves(path string, c *TLS, server bool) {
	switch {
	case c == nil || !p.complete(path):
	case c.Certificate != "" && c.Key == "":
		p.fault(p.at[path], path, "the certificate has no key: set both")
	case c.Key != "" && c.Certificate == "":
		p.fault(p.at[path], path, "the key has no certificate: set both")
	case server && c.Certificate == "":
		p.fault(p.at[path], path, "a listener needs a certificate and a key")
	}
}

// complete reports whether a section and its values have no fault.
func (p *parser) complete(path string) bool {
	return !slices.ContainsFunc(p.faults, func(f Fault) bool { return f.Key == path || strings.HasPrefix(f.Key, path+".") })
}

// output checks an output, and whether it fits the input of its pipeline.
func (p *parser) output(c *Pipeline, path string) {
	out, in := &c.Output, &c.Input
	if n := p.given(path, "peer"); n != nil {
		network, _, _ := strings.Cut(in.Listen, ":")
		switch {
		case !out.Peer && p.complete(path+".peer"):
			p.fault(n, path+".peer", "false has no effect: remove the key")
		case in.Journal != "":
			p.fault(n, path+".peer", "systemd-journal-upload reads no answer: set another output")
		case network == "udp" || network == "unixgram":
			p.fault(n, path+".peer", "a sender of datagrams reads no answer: set another output")
		case in.HTTP == "" && in.Listen == "" && (in.Stdin || in.Files != nil):
			p.fault(n, path+".peer", "only input.listen and input.http have a peer to answer: set another output")
		}
	}
	fields := strings.Count(out.File, peerField)
	switch n := p.given(path, "file"); {
	case n == nil || out.File == "":
	case fields > 0 && in.Stdin:
		p.fault(n, path+".file", "%s needs a peer or a followed file, and standard input has neither: remove the field", peerField)
	case fields > 1 || strings.Contains(filepath.Dir(out.File), peerField):
		p.fault(n, path+".file", "%s may appear only once, and not in a folder's name: all files of a pipeline are in one folder", peerField)
	case strings.HasSuffix(out.File, "/"):
		p.fault(n, path+".file", "%q is a folder: append the name of a file", printable(out.File))
	}
	if n := p.given(path, "open_files"); n != nil && out.File != "" && fields == 0 {
		p.fault(n, path+".open_files", "has no effect without %s in file: remove the key", peerField)
	}
	if n := p.given(path, "connect"); n != nil && out.Connect != "" {
		a, err := parseAddress(out.Connect, false)
		if err == nil && a.network == "systemd" || err != nil {
			p.fault(n, path+".connect", "%q is not an address: write tcp:HOST:PORT or unix:PATH", printable(out.Connect))
		}
		if out.TLS != nil && a.network == "unix" {
			p.fault(p.given(path, "tls"), path+".tls", "has no effect with unix: remove the key")
		}
	}
	p.halves(path+".tls", out.TLS, false)
	for _, pattern := range in.Files {
		if matches, err := filepath.Match(pattern, out.File); err == nil && matches && out.File != "" && !slices.ContainsFunc(in.ExcludePath, func(e string) bool { ok, _ := filepath.Match(e, out.File); return ok }) {
			p.fault(p.given(path, "file"), path+".file", "the input's pattern %q matches this file, so the pipeline would read its own lines: name another file, or add this one to exclude_path", printable(pattern))
			break
		}
	}
}

func (p *parser) together(c *Config) {
	for _, f := range c.conflicts() {
		p.fault(p.at[f.Key], f.Key, "%s", f.Problem)
	}
}

// conflicts returns a fault for each key that claims the same input, address, path or file as
// another key. HTTP inputs and the service may share an address if their paths differ and their TLS
// settings are equal.
func (c *Config) conflicts() (all Faults) {
	owner := make(map[string]string) // keys by claimed resource
	fault := func(key, format string, args ...any) {
		all = append(all, Fault{Key: key, Problem: fmt.Sprintf(format, args...)})
	}
	claim := func(what, key, format string, args ...any) {
		if first, taken := owner[what]; taken {
			fault(key, format, append([]any{first}, args...)...)
			return
		}
		owner[what] = key
	}
	const twice = "%s has this address too: give one of them another address"
	if c.Admin.Listen != "" {
		claim(canonical(c.Admin.Listen), "admin.listen", twice)
	}
	servers := make(map[string]string) // keys by HTTP address
	certs := make(map[string]*TLS)     // by HTTP address
	serve := func(web string, paths []string, key, section string, tls *TLS) {
		web = canonical(web)
		for _, path := range paths {
			claim(web+" "+path, key, "%s has the path %s on this address too: give one of them another path", printable(path))
		}
		if at, taken := owner[web]; taken {
			fault(key, "%s has this address: give one of them another address", at)
		}
		if other, taken := servers[web]; !taken {
			servers[web], certs[web] = section, tls
		} else if !reflect.DeepEqual(certs[web], tls) {
			fault(key, "%s has this address with different certificates: give both the same tls", strings.TrimSuffix(other, ".input"))
		}
	}
	if c.Service.Listen != "" {
		serve(c.Service.Listen, c.Service.paths(), "service.listen", "service", c.Service.TLS)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Pipelines)) {
		in, out := c.Pipelines[name].Input, c.Pipelines[name].Output
		key := "pipelines." + name + ".input."
		web, paths := in.webPaths()
		switch {
		case in.Stdin:
			claim("stdin", key+"stdin", "%s also reads standard input, which can have only one reader")
		case in.Listen != "":
			claim(canonical(in.Listen), key+"listen", twice)
			if other, taken := servers[canonical(in.Listen)]; taken {
				fault(key+"listen", twice, other)
			}
		case web != "":
			if in.HTTP != "" {
				key += "http"
			} else {
				key += "journal_upload"
			}
			serve(web, paths, key, "pipelines."+name+".input", in.TLS)
		}
		if out.File != "" {
			claim("file "+filepath.Clean(out.File), "pipelines."+name+".output.file", "%s appends to this file too: give one of them another file")
		}
	}
	return all
}

// canonical returns the canonical form of an address. An invalid address is unchanged.
func canonical(address string) string {
	a, err := parseAddress(address, strings.HasPrefix(address, "udp:") || strings.HasPrefix(address, "unixgram:"))
	if err != nil {
		return address
	}
	return a.String()
}

func (p *parser) serverURL(text, path string, i int) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		p.fault(p.item(path, i), path, "%q is not a URL of a server: write https://HOST", printable(text))
	}
}
