package daemon

import (
	"context"
	"crypto/rand"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/internal/access"
	elffile "github.com/symfilter/symfilter/internal/object"
)

// buildIDPath is the common prefix of the paths in debuginfod's protocol.
const buildIDPath = "/buildid/"

const (
	// longest pause of a client that reads a file
	depotStall = 30 * time.Second
	// maximum bytes of X-Forwarded-For: eight IPv6 addresses or eight names from newDepotName fit.
	// A longer header counts as too many servers.
	maxChain = 512
	maxWord  = 255 // bytes of a section's name, as in debuginfod.Client.Section
)

// A depot serves debuginfod clients. It searches this machine, then the cache, then the configured
// servers, whose files it caches. Clients share the download of a file. Downloads do not count in
// the limits for logs.
type depot struct {
	symbols *symbols
	name    string             // name of this server in X-Forwarded-For
	cached  *debuginfod.Client // offline client of the cache; nil without servers
	behind  *debuginfod.Client // nil: no servers
}

// newDepotName returns a name for this process in X-Forwarded-For. RFC 7239, section 6.3, defines
// the form of names that are not addresses.
func newDepotName() string { return "_symfilterd-" + rand.Text()[:16] }

// openDepot opens the depot of sym. The caller keeps sym open until the depot is closed.
func openDepot(sym *symbols, name string) (*depot, error) {
	d := &depot{symbols: sym, name: name}
	o, err := sym.conf.servers()
	if err != nil || len(o.URLs) == 0 {
		return d, err
	}
	o.Forwarded, o.Observe = name, sym.observe
	if d.behind, err = debuginfod.New(o); err != nil {
		return nil, err
	}
	o.URLs, o.Offline = nil, true
	if d.cached, err = debuginfod.New(o); err != nil {
		d.behind.Close()
	}
	return d, err
}

func (d *depot) close() {
	for _, c := range []*debuginfod.Client{d.cached, d.behind} {
		if c != nil {
			c.Close()
		}
	}
}

// A wantedFile is the file or section that a request names.
type wantedFile struct {
	id   buildid.ID
	kind string // debuginfo, executable, section or source
	word string // name of the section, or path of the source file
}

// wantedBy reads the path of a request. Its error is a refusal.
func wantedBy(path string) (f wantedFile, err error) {
	digits, rest, _ := strings.Cut(strings.TrimPrefix(path, buildIDPath), "/")
	f.kind, f.word, _ = strings.Cut(rest, "/")
	if f.id, err = buildid.Parse([]byte(digits)); err != nil || len(digits)%2 != 0 || f.id.Len() < 2 {
		return f, refusef(http.StatusNotFound, "%.80q is not a build ID in hex", digits)
	}
	switch {
	case (f.kind == "debuginfo" || f.kind == "executable") && f.word == "":
	case f.kind == "section" && f.word != "" && len(f.word) <= maxWord && !strings.Contains(f.word, "/"):
	case f.kind == "source" && f.word != "":
		f.word = "/" + strings.TrimLeft(f.word, "/")
	default:
		return f, refusef(http.StatusNotFound, "unknown path: write %sID/ and then debuginfo, executable, section/NAME or source/PATH", buildIDPath)
	}
	return f, nil
}

// file handles a request of a debuginfod client.
func (a *api) file(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "only GET and HEAD; files cannot be uploaded")
		return
	}
	want, err := wantedBy(r.URL.Path)
	if err != nil {
		refuseError(w, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	f, err := a.depot.open(ctx, want, chainOf(r))
	switch {
	case err == nil:
	case a.ctx.Err() != nil:
		refuseError(w, errStopped)
		return
	case errors.Is(err, fs.ErrNotExist):
		absent(w)
		return
	default:
		a.house.log.Debug("a debuginfod request has failed", "peer", peerOf(r), "error", err)
		refuse(w, http.StatusServiceUnavailable, "the upstream debuginfod servers are not available; retry later")
		return
	}
	defer f.Close()
	var body io.ReadSeeker = io.NewSectionReader(f, 0, f.Size())
	size := f.Size()
	if want.kind == "section" {
		s := sectionOf(f, want.word)
		body, size = s, s.Size()
	}
	if most, err := strconv.ParseInt(r.Header.Get("X-Debuginfod-Maxsize"), 10, 64); err == nil && most > 0 && size > most {
		refuse(w, http.StatusNotAcceptable, fmt.Sprintf("the file has %d bytes, more than X-Debuginfod-Maxsize", size))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Debuginfod-Size", strconv.FormatInt(size, 10))
	control := http.NewResponseController(w)
	http.ServeContent(&stalling{w, control, a.ctx}, r, "", time.Time{}, body)
	control.SetWriteDeadline(time.Time{})
}

// absent responds that the file was not found. Unlike refuse, it keeps the connection, since
// clients request many files.
func absent(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	io.WriteString(w, "the file was not found\n")
}

// A stalling is a response that fails if the client does not read a part of a file within
// depotStall. Its Write also fails once running is done.
type stalling struct {
	http.ResponseWriter
	control *http.ResponseController
	running context.Context
}

func (s *stalling) Write(p []byte) (int, error) {
	if s.running.Err() != nil {
		return 0, errStopped
	}
	s.control.SetWriteDeadline(time.Now().Add(depotStall))
	return s.ResponseWriter.Write(p)
}

// chainOf returns the X-Forwarded-For of a request: the servers that have forwarded it.
func chainOf(r *http.Request) string {
	return strings.Join(r.Header.Values("X-Forwarded-For"), ", ")
}

// open returns the wanted file, or a file with the wanted section. The error wraps fs.ErrNotExist
// if neither this machine, nor the cache, nor a server has the file.
func (d *depot) open(ctx context.Context, want wantedFile, chain string) (*buildid.File, error) {
	passed := strings.Split(chain, ",")
	loop := len(chain) > maxChain || len(passed) >= debuginfod.MaxForwarded ||
		slices.ContainsFunc(passed, func(s string) bool { return strings.TrimSpace(s) == d.name })
	behind := d.behind
	if loop {
		behind = nil
	}
	if chain != "" {
		ctx = debuginfod.WithForwarded(ctx, chain+", "+d.name)
	}
	switch want.kind {
	case "source":
		return d.source(ctx, behind, want)
	case "executable":
		return d.elf(ctx, behind, want.id, buildid.Executable, hasCode)
	case "debuginfo":
		return d.elf(ctx, behind, want.id, buildid.Debug, hasDebug)
	}
	has := func(f *buildid.File) bool { return sectionOf(f, want.word) != nil }
	f, err := d.elf(ctx, behind, want.id, buildid.Debug, has)
	if err == nil || ctx.Err() != nil {
		return f, err
	}
	f, otherErr := d.elf(ctx, behind, want.id, buildid.Executable, has)
	if otherErr == nil || errors.Is(err, fs.ErrNotExist) {
		err = otherErr
	}
	return f, err // a server that has failed may have the file
}

// elf returns the first ELF file of id for which accept returns true. It searches this machine, the
// cache, and then the servers of the client behind, which may be nil.
func (d *depot) elf(ctx context.Context, behind *debuginfod.Client, id buildid.ID, kind buildid.Kind, accept func(*buildid.File) bool) (*buildid.File, error) {
	q := buildid.Query{ID: id, Kind: kind, Better: true}
	f, err := d.symbols.Find(ctx, q, accept)
	if err == nil || ctx.Err() != nil {
		return f, err
	}
	for _, c := range []*debuginfod.Client{d.cached, behind} {
		if c == nil {
			continue
		}
		f, e := c.Find(ctx, q, nil)
		switch {
		case e == nil && accept(f):
			return f, nil
		case e == nil:
			f.Close()
		case !errors.Is(e, fs.ErrNotExist):
			err = e
		}
	}
	return nil, err
}

// source returns a source file from the cache or a server. It does not search this machine: only a
// server with the build's debug information can map the path to a file.
func (d *depot) source(ctx context.Context, behind *debuginfod.Client, want wantedFile) (*buildid.File, error) {
	err := error(fs.ErrNotExist)
	for _, c := range []*debuginfod.Client{d.cached, behind} {
		if c == nil {
			continue
		}
		opener := access.Debuginfod(c).(interface {
			OpenSource(ctx context.Context, id buildid.ID, path string) (*buildid.File, error)
		})
		var f *buildid.File
		if f, err = opener.OpenSource(ctx, want.id, want.word); err == nil {
			return f, nil
		}
	}
	return nil, err
}

// hasDebug reports whether a file has debug information, not just a symbol table.
func hasDebug(f *buildid.File) bool {
	return hasSection(f, func(s *elffile.Section) bool {
		return s.Type != elf.SHT_NOBITS && (strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".zdebug_") || s.Name == ".gnu_debugaltlink")
	})
}

// hasCode reports whether a program or library has its code.
func hasCode(f *buildid.File) bool {
	return hasSection(f, func(s *elffile.Section) bool { return s.Type != elf.SHT_NOBITS && s.Flags&elf.SHF_EXECINSTR != 0 })
}

func hasSection(f *buildid.File, is func(*elffile.Section) bool) bool {
	o, err := elffile.Open(f, f.Size(), nil)
	if err != nil {
		return false
	}
	defer o.Close()
	all := o.Sections()
	for i := range all {
		if is(&all[i]) {
			return true
		}
	}
	return false
}

// sectionOf returns the bytes of a section as stored in the file, or nil if the section is missing
// or has no bytes in the file.
func sectionOf(f *buildid.File, name string) (data *io.SectionReader) {
	hasSection(f, func(s *elffile.Section) bool {
		size := uint64(f.Size())
		if s.Name != name || s.Type == elf.SHT_NOBITS || s.Offset > size || s.Size > size-s.Offset {
			return false
		}
		data = io.NewSectionReader(f, int64(s.Offset), int64(s.Size))
		return true
	})
	return data
}
