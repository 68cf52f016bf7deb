package filter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// rendered is an answer with its text, as the Cache stores it. Filters with the same Cache share
// its memory, which must not be modified.
type rendered struct {
	text string // in the form of draft.text
	renderedParts
}

// A draft is a newly rendered answer. The next draft overwrites its text and cuts, so a Cache
// stores a copy.
type draft struct {
	// text has no colours. For a code address it has the frames, innermost first, as they follow
	// the address in a backtrace line. For a data address it is a name such as name+0x18. For the
	// form wholeVariable it is the text that the method whole reads.
	text []byte
	renderedParts
}

type renderedParts struct {
	cuts     []frameCuts // offsets in text of the frames and their parts; empty for a data address
	until    int64       // Unix nanoseconds after which there may be a better debug file; 0: never
	system   uint32      // bit i: the i-th frame is a system frame; see systemBit
	none     bool        // no symbol covers the address, and there is no text
	back     bool        // the address has no kind, and the byte before it was looked up
	*sources             // nil unless the Filter needs them
}

// sources holds the frames or the variable that the symbolizer returned. Printers of elements and
// Options.Resolved need them in addition to the text.
type sources struct {
	frames   []symbolize.Frame
	recorded []string            // files of frames, in the form of debug information
	links    []string            // URLs of the source lines of frames; nil without Paths.Link
	variable *symbolize.Variable // set for data addresses, nil otherwise
}

// frameCuts are the offsets at which the parts of a frame end in its answer's text. There may be a
// million, so they have no pointers. Each part begins one byte after the previous one. Without a
// line, name, file, line and col are equal; without a column, line and col are equal.
type frameCuts struct {
	start, name, file, line, col, end uint32
}

// systemBit returns the bit of the i-th frame in rendered.system. Frames from the 32nd on share one
// bit.
func systemBit(i int) uint32 { return 1 << min(i, 31) }

func (r *rendered) ofSystem(i int) bool { return r.system&systemBit(i) != 0 }

func (r *rendered) allOfSystem() bool {
	for i := range r.cuts {
		if !r.ofSystem(i) {
			return false
		}
	}
	return true
}

func (r *rendered) frame(i int) layout.Frame {
	c := &r.cuts[i]
	t := layout.Frame{Name: r.text[c.start:c.name], Inlined: i < len(r.cuts)-1}
	if c.file > c.name {
		t.File, t.Line = r.text[c.name+1:c.file], r.text[c.file+1:c.line]
		if c.col > c.line {
			t.Column = r.text[c.line+1 : c.col]
		}
		if r.sources != nil && i < len(r.links) {
			t.Link = r.links[i]
		}
	}
	return t
}

// functionAndLine returns the text of layout.Line.FunctionAndLine for the i-th frame.
func (r *rendered) functionAndLine(i int) string { return r.text[r.cuts[i].start:r.cuts[i].col] }

// tail returns the text after the address of the i-th frame.
func (r *rendered) tail(i int) string { return r.text[r.cuts[i].start:r.cuts[i].end] }

// data returns the name of a data address, with its member or offset, or "" for a code address.
func (r *rendered) data() string {
	if len(r.cuts) > 0 {
		return ""
	}
	return r.text
}

// size returns the approximate bytes of r in a Cache.
func (r *draft) size() int64 {
	n := int64(96 + len(r.text) + len(r.cuts)*24)
	if r.sources == nil {
		return n
	}
	n += 64
	for i := range r.frames {
		s := &r.frames[i]
		n += int64(112 + len(s.Func) + len(s.Linkage) + len(s.File) + len(r.recorded[i]))
	}
	for _, link := range r.links {
		n += int64(16 + len(link))
	}
	if v := r.variable; v != nil {
		n += int64(96 + len(v.Name) + len(v.Linkage) + len(v.Member))
	}
	return n
}

type ownFrames = interface {
	Is(function, file, object string) bool
}

type renderer struct {
	paths   *Paths
	own     ownFrames // nil: frames are not classified
	short   bool      // Display.ShortNames
	sources bool      // drafts include their sources

	// Scratch, valid until the next answer is rendered.
	text  []byte
	cuts  []frameCuts
	place []byte // (module+0x1196)
	url   []byte
}

// frames renders the frames at a code address. There is at least one.
func (w *renderer) frames(frames []symbolize.Frame, m *module, rel uint64, back bool) draft {
	paths := w.paths
	parts := renderedParts{back: back, until: unixNano(frames[0].Until)}
	if w.sources {
		parts.sources = w.sourcesOf(frames, symbolize.Location{ID: m.buildID(), Name: m.asked(), Addr: rel})
	}
	if w.own != nil {
		for i := range frames {
			if s := &frames[i]; !w.own.Is(report.LinkName(s), paths.mapped(s.File), m.name()) {
				parts.system |= systemBit(i)
			}
		}
	}
	w.place = append(appendPlace(append(w.place[:0], '('), m, rel), ')')
	text, cuts := w.text[:0], slices.Grow(w.cuts[:0], len(frames))[:len(frames)]
	for i := range frames {
		s, c := &frames[i], &cuts[i]
		c.start = uint32(len(text))
		switch {
		case s.Func == "":
			text = append(text, layout.UnknownFunction...)
		case w.short:
			text = append(text, layout.ShortName(escape.Clean(s.Func))...)
		case s.PlainFunc:
			text = append(text, s.Func...)
		default:
			text = append(text, escape.Clean(s.Func)...)
		}
		if s.File == "" && s.Offset != 0 && s.Func != "" {
			text = append(text, "+0x"...)
			text = strconv.AppendUint(text, s.Offset, 16)
		}
		c.name = uint32(len(text))
		c.file, c.line, c.col = c.name, c.name, c.name
		file := ""
		if s.File != "" {
			if file = paths.Shown(s.File); !s.PlainFile || len(paths.Map) > 0 {
				file = escape.Clean(file)
			}
		}
		if file != "" {
			text = append(append(text, ' '), file...)
			c.file = uint32(len(text))
			text = strconv.AppendUint(append(text, ':'), uint64(s.Line), 10)
			c.line = uint32(len(text))
			if s.Column != 0 {
				text = strconv.AppendUint(append(text, ':'), uint64(s.Column), 10)
			}
			c.col = uint32(len(text))
		}
		text = append(append(text, ' '), w.place...)
		c.end = uint32(len(text))
	}
	w.text, w.cuts = text, cuts
	parts.cuts = cuts
	return draft{text, parts}
}

func (w *renderer) sourcesOf(frames []symbolize.Frame, l symbolize.Location) *sources {
	all := &sources{frames: slices.Clone(frames), recorded: make([]string, len(frames))}
	for i := range frames {
		s := &all.frames[i]
		all.recorded[i] = s.File
		if w.paths.Link != nil {
			w.url, _ = w.paths.Link(w.url[:0], l, s)
			all.links = append(all.links, string(w.url))
		}
		if s.File != "" {
			s.File = w.paths.Shown(s.File)
		}
	}
	return all
}

func (w *renderer) variable(v symbolize.Variable) draft {
	name := v.Name
	if v.Member != "" {
		name += v.Member
	} else if v.Offset != 0 {
		name += "+0x" + strconv.FormatUint(v.Offset, 16)
	}
	w.text = append(w.text[:0], escape.Clean(name)...)
	parts := renderedParts{until: unixNano(v.Until)}
	if w.sources {
		parts.sources = &sources{variable: &v}
	}
	return draft{w.text, parts}
}

// whole renders a variable for [rendered.whole]: size, offset of the address, and name.
func (w *renderer) whole(v symbolize.Variable) draft {
	d := w.variable(symbolize.Variable{Name: v.Name, Until: v.Until})
	w.text = fmt.Appendf(w.text[:0], "%d %d %s", v.Size, v.Offset, escape.Clean(v.Name))
	d.text = w.text
	if d.sources != nil {
		d.sources = &sources{variable: &v}
	}
	return d
}

// whole returns the variable's name, its size in bytes, and the offset of the address in it. r must
// have the form wholeVariable.
func (r *rendered) whole() (name string, size, offset uint64) {
	digits, rest, _ := strings.Cut(r.text, " ")
	distance, name, _ := strings.Cut(rest, " ")
	size, _ = strconv.ParseUint(digits, 10, 64)
	offset, _ = strconv.ParseUint(distance, 10, 64)
	return name, size, offset
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// label returns the name of a module in frames, or its build ID if it has no name.
func (m *module) label() string {
	if m.name() == "" {
		return m.buildID().String()
	}
	return escape.Clean(m.name())
}

func appendPlace(dst []byte, m *module, rel uint64) []byte {
	dst = append(dst, m.label()...)
	dst = append(dst, "+0x"...)
	return strconv.AppendUint(dst, rel, 16)
}
