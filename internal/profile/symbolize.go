package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/mapped"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	maxFiles   = 4096             // files that a profile may name
	layoutWait = 10 * time.Second // longest wait for the headers of a debug file already found
	siteSize   = 512              // bytes of a site, and of the search for its debug file
)

// Reasons why an address cannot be looked up.
var (
	errNotFile = errors.New("not a file")
	errBuildID = errors.New("the profile gives a build ID that is not valid")
)

// A mapsKind distinguishes exact mappings from joined mappings.
type mapsKind int

const (
	exactMaps  mapsKind = iota // each mapping is a segment of a file, or adjacent ones, as in Linux
	joinedMaps                 // the profiler may have joined several mappings
)

// A resolver names the addresses of a profile.
type resolver struct {
	o       *Options
	m       *memory
	asker   *report.Asker
	objects *report.Objects
	missing report.Missing
	frames  []symbolize.Frame // scratch
}

func newResolver(o *Options, m *memory) *resolver {
	return &resolver{o: o, m: m, asker: report.NewAsker(&o.Options), objects: report.NewObjects(&o.Options, maxFiles, false)}
}

func (r *resolver) close() { r.objects.Close() }

func (r *resolver) note(message string) { r.o.Report(message) }

// A site holds the object file of a mapping, and how the file is loaded.
type site struct {
	file   *report.Object
	layout mapped.File
	known  bool  // layout is set
	err    error // the reason why addresses cannot be looked up
	failed bool  // an address has no name because of err
}

// profile names the locations of p that have no function. It marks the mappings whose locations
// need no further lookup.
func (r *resolver) profile(p *stacks.Profile, kind mapsKind) error {
	sites := make([]*site, len(p.Mappings))
	if r.o.Symbolizer != nil {
		for i := range p.Locations { // start the searches for all files, which run at the same time
			if l := &p.Locations[i]; l.Mapping != 0 && !isNamed(p, l) {
				if m := l.Mapping - 1; sites[m] == nil {
					if err := r.m.take(siteSize); err != nil {
						return err
					}
					sites[m] = r.site(&p.Mappings[m], kind)
				}
			}
		}
	}
	// by address, since neighbours are in the same unit of debug information
	order := stacks.Order(len(p.Locations), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(p.Locations[a].Address, p.Locations[b].Address), cmp.Compare(a, b))
	})
	for _, i := range order {
		l := &p.Locations[i]
		if isNamed(p, l) {
			continue
		}
		if r.o.Context != nil && errors.Is(r.o.Context.Err(), context.Canceled) {
			return context.Canceled // the caller has cancelled Read
		}
		if l.Mapping == 0 || r.o.Symbolizer == nil {
			r.missing.Add(symbolize.Unresolved{Frames: 1})
			continue
		}
		if err := r.location(p, l, sites[l.Mapping-1]); err != nil {
			return err
		}
	}
	for i := range p.Mappings {
		m := &p.Mappings[i]
		if s := sites[i]; s != nil {
			if s.failed {
				continue // a viewer may find the file
			}
			if m.BuildID == "" && !s.file.ID.IsZero() {
				m.BuildID = s.file.ID.String()
			}
		}
		if r.o.Symbolizer != nil {
			*m = m.Symbolized()
		}
	}
	return nil
}

// isNamed reports whether a location has the name of a function.
func isNamed(p *stacks.Profile, l *stacks.Location) bool {
	return slices.ContainsFunc(l.Lines, func(line stacks.Line) bool {
		return line.Function != 0 && p.Functions[line.Function-1].Name != ""
	})
}

// location names a location without a function.
func (r *resolver) location(p *stacks.Profile, l *stacks.Location, s *site) error {
	m := &p.Mappings[l.Mapping-1]
	if s.err == nil && !s.known {
		r.findLayout(s)
	}
	rel, err := uint64(0), s.err
	if err == nil {
		rel, err = s.layout.Relative(rangeOf(m), l.Address)
	}
	var a report.Answer
	if err == nil {
		a = r.asker.Frames(r.frames[:0], s.file, rel)
		r.frames = a.Frames
		err = a.Err
	}
	if err != nil {
		s.failed = true
	}
	lines, cost := r.lines(p, a.Frames)
	if len(lines) == 0 {
		r.missing.Add(symbolize.Unresolved{ID: s.file.ID, Name: s.file.Path, Frames: 1, Err: err})
		return nil
	}
	r.missing.Named++
	l.Lines = lines
	return r.m.take(cost)
}

// lines converts frames to lines, and returns the bytes they take. It returns none if no frame
// has a function.
func (r *resolver) lines(p *stacks.Profile, frames []symbolize.Frame) (lines []stacks.Line, cost int) {
	if !slices.ContainsFunc(frames, func(f symbolize.Frame) bool { return f.Func != "" }) {
		return nil, 0
	}
	for i := range frames {
		f := r.o.Shown(&frames[i])
		if f.Func == "" {
			f.Func = "??"
		}
		before := len(p.Functions)
		line := stacks.Line{Function: p.AddFunction(stacks.Function{Name: f.Func, LinkName: report.LinkName(&f), File: f.File})}
		if f.HasLine {
			line.Line, line.Column = int64(f.Line), int64(f.Column)
		}
		lines = append(lines, line)
		cost += 32
		if len(p.Functions) > before {
			cost += len(f.Func) + len(f.Linkage) + len(f.File) + 256
		}
	}
	return lines, cost
}

// site returns the site of a mapping, and starts the search for its debug file.
func (r *resolver) site(m *stacks.Mapping, kind mapsKind) *site {
	id, err := buildid.Parse([]byte(m.BuildID))
	if err != nil {
		id = buildid.ID{}
	}
	if m.File == "" && id.IsZero() || isPseudo(m.File) && (id.IsZero() || !strings.HasPrefix(m.File, "[kernel")) {
		return &site{file: &report.Object{Path: m.File, Err: errNotFile}, err: errNotFile}
	}
	if m.BuildID != "" && id.IsZero() {
		r.note(fmt.Sprintf("%.200s: %v (%.80q); addresses in this file remain unresolved", m.File, errBuildID, m.BuildID))
		return &site{file: &report.Object{Path: m.File, Err: errBuildID}, err: errBuildID}
	}
	if m.File == "" { // a profiler in the kernel may know only the build ID
		s := &site{file: &report.Object{Name: id.String(), Path: id.String(), ID: id}}
		r.asker.Prefetch(s.file)
		return s
	}
	f := r.objects.Named(m.File)
	s := &site{file: f, layout: mapped.NewFile(f.Loads, true), known: true, err: f.Err}
	if !id.IsZero() && (f.Err != nil || f.ID != id) {
		// the file is elsewhere, or another build has its path now
		path := f.Path
		if f.Err == report.ErrDeleted {
			path = strings.TrimSuffix(path, " (deleted)")
		}
		s = &site{file: &report.Object{Name: m.File, Path: path, ID: id}}
	}
	switch {
	case s.err != nil:
		r.note(f.Fault().Error() + "; addresses in this file remain unresolved")
	case id.IsZero() && !s.layout.Fits(rangeOf(m), kind == joinedMaps):
		s.err = fmt.Errorf("not the file that ran: the %d bytes mapped from offset 0x%x do not match a code segment", m.Limit-m.Start, m.Offset)
		r.note(fmt.Sprintf("%s: %v; addresses in this file remain unresolved", f.Path, s.err))
	default:
		r.asker.Prefetch(s.file)
	}
	return s
}

// isPseudo reports whether the name of a mapping is not the path of a file.
func isPseudo(name string) bool {
	for _, prefix := range []string{"[", "//anon", "/anon_hugepage", "/memfd:", "/dev/zero", "anon_inode:", "linux-vdso", "linux-gate"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// findLayout waits for the debug file of a site, and reads how the file is loaded.
func (r *resolver) findLayout(s *site) {
	s.known = true
	if a := r.asker.Frames(nil, s.file, 0); a.Err != nil { // waits as long as Options allow
		s.err = a.Err
		return
	}
	parent := r.o.Context
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, layoutWait)
	defer cancel()
	segments, _, err := access.Symbolizer(r.o.Symbolizer).(layouts).Layout(ctx, nil, s.file.ID, s.file.Path)
	if s.err = err; err == nil {
		s.layout = mapped.NewFile(segments, false)
	}
}

func rangeOf(m *stacks.Mapping) mapped.Range {
	return mapped.Range{Start: m.Start, Limit: m.Limit, Offset: m.Offset}
}

// layouts returns the segments of a module's file. The Symbolizer implements it.
type layouts interface {
	Layout(ctx, within context.Context, id buildid.ID, name string) (segments []object.Segment, fixed bool, err error)
}
