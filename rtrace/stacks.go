package rtrace

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
)

// Indexes of a stack's values, in the order of Go's heap profiles.
const (
	allocObjects = iota
	allocSpace
	inuseObjects
	inuseSpace
)

// newStacks returns the writer of NewReport for Pprof, Folded and Speedscope.
func newStacks(w io.Writer, o Options) io.WriteCloser {
	s := &stacker{w: w, live: make(map[resource]*held), mappings: make(map[*mapping]uint32), contexts: make(map[uint64]string)}
	s.p.Values = []stacks.ValueType{{Name: "alloc_objects", Unit: "count"}, {Name: "alloc_space", Unit: "bytes"}, {Name: "inuse_objects", Unit: "count"}, {Name: "inuse_space", Unit: "bytes"}}
	s.p.Default = "inuse_space"
	s.share = report.NewShare(o.Memory)
	s.translator = newTranslator(&o, s.take)
	return s
}

// A stacker turns groups of calls into the stacks of a profile.
type stacker struct {
	*translator
	w     io.Writer
	p     stacks.Profile
	begun bool
	share report.Share
	left  int64 // calls left out, beyond the memory limit or maxGrouped

	unordered bool       // frees may come before allocations, in a compressed report
	frees     []resource // frees of an unordered report, kept until its end

	types    resourceTypes
	contexts map[uint64]string // names, by bits
	live     map[resource]*held
	mappings map[*mapping]uint32

	calls  []groupedCall // calls of the current group
	stack  []uint32
	framed bool
	frames []findings.TraceFrame
	lines  []stacks.Line
}

type groupedCall struct {
	resource
	alloc  bool
	size   int64
	labels []stacks.Label
}

// A held is an allocated resource that is not yet freed. If the type counts references, a resource
// may have several allocations. Each free then ends the last allocation.
type held struct {
	stack  []uint32
	labels []stacks.Label
	size   int64
	before *held // an earlier allocation of a counted resource
}

// Approximate bytes of a held resource: heldCost for its struct and its entry in the table, and
// heldFrameCost for each frame.
const (
	heldCost      = 512
	heldFrameCost = 16
)

// Close prints the profile.
func (s *stacker) Close() error {
	err := s.translator.Close()
	s.finish()
	s.freeAll()
	s.share.Release()
	if n := s.left + s.lostCalls(); n > 0 {
		s.diagnostics.Report(fmt.Sprintf("%d calls are not in the profile: they exceed the %d MiB of memory allowed (--max-memory)", n, s.share.Budget.Most()>>20))
	}
	switch {
	case err != nil:
		return err
	case s.o.Output == Folded:
		return s.p.WriteFolded(s.w, inuseSpace)
	case s.o.Output == Speedscope:
		return s.p.WriteSpeedscope(s.w, "sp-rtrace")
	}
	return s.p.WritePprof(s.w)
}

// lostCalls returns the number of calls that the processor has left out.
func (t *translator) lostCalls() int64 {
	if t.processor == nil {
		return 0
	}
	return t.processor.lost
}

func (s *stacker) take(rec *record) error {
	switch rec.Kind {
	case headerRecord:
		s.finish()
		s.freeAll()
		s.unordered = bytes.Contains(rec.headerValue("filter"), []byte("compress"))
		if s.begun {
			s.space.reset()
			clear(s.live)
			clear(s.mappings)
			clear(s.contexts)
		}
		s.types = s.types[:0]
	case mapRecord:
		s.mapped(rec)
	case resourceRecord:
		s.types.add(rec)
	case contextRecord:
		if len(s.contexts) < maxTypes {
			s.contexts[rec.Mask] = string(rec.Name)
		}
	case allocRecord, freeRecord:
		if !rec.Joined || s.framed {
			s.finish()
		}
		s.call(rec)
	case frameRecord:
		if len(s.calls) > 0 {
			s.framed = true
			s.location(rec)
		}
	case blankRecord:
		s.finish()
	}
	s.begun = true
	return nil
}

func (s *stacker) call(rec *record) {
	kind := string(rec.Type)
	if rec.Type == nil && len(s.types) > 0 {
		kind = s.types[0].name
	}
	c := groupedCall{resource: resource{kind, rec.ID}, alloc: rec.Kind == allocRecord, size: max(0, rec.Size)}
	if c.alloc {
		if names := s.contextsOf(rec.Contexts); names != "" {
			c.labels = append(c.labels, stacks.Label{Key: "context", Text: names})
		}
		if kind != "" {
			c.labels = append(c.labels, stacks.Label{Key: "resource", Text: kind})
		}
	}
	if len(s.calls) >= maxGrouped {
		s.left++
		return
	}
	s.calls = append(s.calls, c)
}

const maxGrouped = 64 << 10 // calls of a group

// contextsOf returns the names of the contexts in mask, separated by '|'.
func (s *stacker) contextsOf(mask uint64) string {
	var names []string
	for rest := mask; rest != 0; rest &= rest - 1 {
		bit := rest & -rest
		name, ok := s.contexts[bit]
		if !ok {
			name = fmt.Sprintf("@%x", bit)
		}
		names = append(names, name)
	}
	return strings.Join(names, "|")
}

// location adds a frame to the stack of the current group, up to maxStack frames.
func (s *stacker) location(rec *record) {
	if len(s.stack) >= maxStack {
		return
	}
	s.frames = s.frame(s.frames[:0], rec)
	l := stacks.Location{}
	if rec.Addr > 0 {
		l.Address = rec.Addr - 1 // inside the call
	}
	if at := s.space.site(rec).at; at != nil {
		l.Mapping = s.mapping(at)
	}
	s.lines = s.lines[:0]
	for i := range s.frames {
		f := &s.frames[i]
		if !f.Named() && f.File == "" {
			continue
		}
		name := cmp.Or(f.Func, f.Linkage, "??")
		s.lines = append(s.lines, stacks.Line{Function: s.p.AddFunction(stacks.Function{Name: name, LinkName: f.Linkage, File: f.File}), Line: int64(f.Line), Column: int64(f.Column)})
	}
	l.Lines = s.lines
	s.stack = append(s.stack, s.p.AddLocation(l))
}

const maxStack = 4096 // frames of a stack

// mapping returns the number of a mapping in the profile.
func (s *stacker) mapping(at *mapping) uint32 {
	n, ok := s.mappings[at]
	if !ok {
		m := stacks.Mapping{Start: at.from, Limit: at.to, File: at.path}
		if at.file != nil && !at.file.ID.IsZero() {
			m.BuildID = at.file.ID.String()
		}
		n = s.p.AddMapping(m.Symbolized())
		s.mappings[at] = n
	}
	return n
}

func (s *stacker) finish() {
	for i := range s.calls {
		c := &s.calls[i]
		switch {
		case c.alloc:
		case !s.unordered:
			s.freed(c.resource)
			continue
		case s.share.Take(heldFrameCost+int64(len(c.kind)), 0):
			s.frees = append(s.frees, c.resource)
			continue
		default:
			s.left++
			continue
		}
		if !s.share.Take(heldCost+int64(len(s.stack))*heldFrameCost, 0) {
			s.left++
			continue
		}
		s.add(c.labels, s.stack, [...]int64{1, c.size, 1, c.size})
		h := &held{stack: append([]uint32(nil), s.stack...), labels: c.labels, size: c.size}
		if t := s.types.named(c.kind); t != nil && t.counts {
			h.before = s.live[c.resource]
		}
		s.live[c.resource] = h
	}
	s.calls, s.stack, s.framed = s.calls[:0], s.stack[:0], false
}

// freeAll frees the resources in s.frees. It is called at the end, since frees may come before
// allocations in an unordered report.
func (s *stacker) freeAll() {
	for _, r := range s.frees {
		s.freed(r)
	}
	s.frees = nil
}

// freed subtracts the last allocation of r from the resources in use. It does nothing if r is not
// allocated.
func (s *stacker) freed(r resource) {
	h := s.live[r]
	if h == nil {
		return
	}
	if h.before != nil {
		s.live[r] = h.before
	} else {
		delete(s.live, r)
	}
	s.add(h.labels, h.stack, [...]int64{0, 0, -1, -h.size})
}

func (s *stacker) add(labels []stacks.Label, stack []uint32, values [4]int64) {
	s.p.AddSample(stacks.Sample{Stack: stack, Values: values[:], Labels: labels})
}
