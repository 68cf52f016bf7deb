package valgrind

import (
	"slices"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/symbolize"
)

// A sharing holds frames and stacks that are used by several findings of a process. Frames take
// most of the memory of findings, and many findings have the same frames.
type sharing struct {
	sites  map[siteKey]*sharedSite
	bytes  int    // approximate memory of the sites
	text   []byte // scratch: the text of a site
	stacks [sharedStacks][]*findings.TraceFrame
}

// A siteKey is the key of a shared site. Few sites of a process have the same key. at and rel are
// set only for located sites.
type siteKey struct {
	ip, line, rel uint64
	at            *epoch
}

// A sharedSite holds the frames of one site as the report lists them, and the trace frames made
// from them, which all findings with this site share.
type sharedSite struct {
	from    []sharedFrame // the frames in the report
	frames  []*findings.TraceFrame
	named   bool // the symbolizer named the frames
	unnamed bool // the frames have no names: a later answer may be better

	// Memory of from and frames, enough for most sites.
	oneFrom  [1]sharedFrame
	oneRef   [1]*findings.TraceFrame
	oneFrame [1]findings.TraceFrame
}

// A sharedFrame holds copies of the texts of one frame in a report.
type sharedFrame struct {
	object, fn, source string
	dir                int // length of the folder in source
	// has is true for each text that the report has, even if the text is empty: object, function,
	// folder and file.
	has [4]bool
}

// maxSharedBytes bounds the memory of shared sites, in bytes. sharedStacks bounds the number of
// shared stacks. The errors of a program as large as a compiler have about 10,000 sites.
const (
	maxSharedBytes  = 16 << 20
	sharedFrameSize = 640 // bytes of a site with one frame, without its text
	sharedStacks    = 1 << 10
)

// site returns the kept site with this key and these frames, or nil.
func (s *sharing) site(k siteKey, frames []Frame) *sharedSite {
	known := s.sites[k]
	if known == nil || len(known.from) != len(frames) {
		return nil
	}
	for i := range frames {
		if !known.from[i].is(&frames[i]) {
			return nil
		}
	}
	return known
}

// is reports whether f has a numeric address and the same texts as s.
func (s *sharedFrame) is(f *Frame) bool {
	file := s.source
	if s.dir > 0 {
		file = file[s.dir+1:]
	}
	return f.RawIP == nil && string(f.Fn) == s.fn && string(f.File) == file && string(f.Dir) == s.source[:s.dir] && string(f.Obj) == s.object && textsOf(f) == s.has
}

// textsOf reports which texts a frame has, even if they are empty, in the order of sharedFrame.has.
func textsOf(f *Frame) [4]bool {
	return [...]bool{f.Obj != nil, f.Fn != nil, f.Dir != nil, f.File != nil}
}

// newSite returns a site with copies of the texts of frames. All frames have the given object.
func (s *sharing) newSite(frames []Frame, object string) *sharedSite {
	b := s.text[:0]
	for i := range frames {
		f := &frames[i]
		if b = append(append(b, f.Fn...), f.Dir...); len(f.Dir) > 0 {
			b = append(b, '/')
		}
		b = append(b, f.File...)
	}
	s.text = b
	rest := string(b)
	next := func(n int) (text string) {
		text, rest = rest[:n], rest[n:]
		return text
	}
	site := new(sharedSite)
	site.from = site.oneFrom[:]
	if len(frames) > 1 {
		site.from = make([]sharedFrame, len(frames))
	}
	for i := range frames {
		f, to := &frames[i], &site.from[i]
		to.has, to.object, to.fn, to.dir = textsOf(f), object, next(len(f.Fn)), len(f.Dir)
		n := len(f.File)
		if len(f.Dir) > 0 {
			n += len(f.Dir) + 1
		}
		to.source = next(n)
	}
	return site
}

// trace makes n frames for s, all zero, and returns them for the caller to fill.
func (s *sharedSite) trace(n int) []findings.TraceFrame {
	if n != 1 {
		all := make([]findings.TraceFrame, n)
		s.frames = findings.Refer(all)
		return all
	}
	s.oneRef[0] = &s.oneFrame[0]
	s.frames = s.oneRef[:]
	return s.oneFrame[:]
}

// keep stores a site, unless it alone takes more than a 16th of maxSharedBytes. At the bound,
// it first drops all other sites.
func (s *sharing) keep(k siteKey, site *sharedSite) {
	size := sharedFrameSize * len(site.from)
	for i := range site.from {
		size += len(site.from[i].fn) + len(site.from[i].source)
	}
	if size > maxSharedBytes/16 {
		return
	}
	if s.bytes+size > maxSharedBytes || s.sites == nil {
		s.sites, s.bytes = make(map[siteKey]*sharedSite), 0
	}
	s.bytes += size
	s.sites[k] = site
}

// stack returns a stack with these frames. Most equal stacks share memory.
func (s *sharing) stack(frames []*findings.TraceFrame) []*findings.TraceFrame {
	var sum uint64
	for _, f := range frames {
		sum = (sum ^ f.Address) * 0x9E3779B97F4A7C15 // spreads the address over the high bits
	}
	slot := &s.stacks[sum>>54]
	if slices.Equal(*slot, frames) {
		return *slot
	}
	// exact size: in a slice grown by append, up to half would be unused
	*slot = append(make([]*findings.TraceFrame, 0, len(frames)), frames...)
	return *slot
}

// frames returns the frames of a stack for a finding. The frames and the slice may be shared.
func (f *finder) frames(frames []Frame) []*findings.TraceFrame {
	f.sites = f.t.appendSites(f.sites[:0], frames)
	f.stack = f.stack[:0]
	for i := range f.sites {
		f.stack = append(f.stack, f.traceOf(&f.sites[i])...)
	}
	return f.shared.stack(f.stack)
}

// traceOf returns the frames of a site for a finding: the symbolizer's frames if they improve on
// the report's frames, otherwise the report's.
func (f *finder) traceOf(s *site) []*findings.TraceFrame {
	last := &s.frames[len(s.frames)-1]
	k := siteKey{ip: last.IP, line: last.Line, at: s.at}
	if s.at != nil {
		k.rel = s.rel
	}
	known := f.shared.site(k, s.frames)
	if known != nil && !known.unnamed {
		if known.named {
			f.t.missing.Named++
		}
		return known.frames
	}
	var got *answer
	var why error
	if s.at != nil {
		f.answers.Prefetch(s.at.of.file.Object)
		got = f.answers.answerFor(s)
		why = got.err
	} else {
		_, why = f.t.cur.whyUnplaced(last)
	}
	named := got != nil && got.improvesOn(s)
	unnamed := !named && last.Fn == nil && last.File == nil
	if unnamed {
		f.t.countUnresolved(s, why)
		if known != nil {
			return known.frames
		}
	}
	place := findings.TraceFrame{Address: last.IP}
	if last.Obj != nil {
		place.Object = f.t.objectName(last.Obj)
	}
	if s.at != nil {
		place.ID, place.Offset = s.at.of.file.ID, s.rel
	}
	site := f.shared.newSite(s.frames, place.Object)
	switch site.named, site.unnamed = named, unnamed; {
	case named:
		f.t.missing.Named++
		for i, all := 0, site.trace(len(got.frames)); i < len(all); i++ {
			all[i] = place
			all[i].Frame = f.o.report().Shown(&got.frames[i])
		}
	case unnamed:
		site.trace(1)[0] = place
	default:
		for i, all := 0, site.trace(len(s.frames)); i < len(all); i++ {
			all[i] = place
			all[i].Frame = f.reported(&s.frames[i], &site.from[i], got)
			all[i].Inlined = i < len(s.frames)-1
		}
	}
	if last.RawIP == nil {
		f.shared.keep(k, site)
	}
	return site.frames
}

// reported converts a frame of the report to a frame of package symbolize, and keeps its names. The
// parameter text has copies of its texts. The linkage name may be from the symbolizer's answer got,
// which may be nil.
func (f *finder) reported(from *Frame, text *sharedFrame, got *answer) (to symbolize.Frame) {
	to.Func = text.fn
	to.Linkage = got.linkageFor(from)
	if isMangled(from.Fn) {
		to.Linkage = to.Func
		if f.o.Symbolizer != nil {
			to.Func = f.o.Symbolizer.Demangle(to.Func)
		}
	}
	if to.Linkage == "" {
		to.Linkage = to.Func
	}
	if from.File != nil {
		to.File = f.o.report().ShownFile(text.source)
		to.Line, to.HasLine = uint32(min(from.Line, 1<<32-1)), from.Line > 0
	}
	return to
}

// objectName returns name as a string. Frames of a known object share the string.
func (t *tracker) objectName(name []byte) string {
	if o := t.cur.knownObject(name); o != nil {
		return o.name
	}
	return string(name)
}
