package valgrind

import (
	"slices"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// places locates one process's object files, and looks up frames by address. It serves files of
// DHAT and Massif, which have addresses but no map. One goroutine at a time may use it.
type places struct {
	t      *tracker
	solved bool            // no fact is newer than the last search
	named  bool            // the search for debug files has begun
	wanted map[string]bool // objects with a frame that has no name
}

// newPlaces implements inner.NewPlaces.
func newPlaces(program string, o Options) *places {
	o.Ahead, o.Elements = nil, false
	t := newTracker(&o)
	t.hasElements = true
	t.cur.exe = t.cur.keepText([]byte(program))
	return &places{t: t, wanted: make(map[string]bool)}
}

// Learn records that the address of f is in the code of its object. inner is the frame that f
// called, or the zero value if unknown. Call Learn for all frames before Frames, since a bias
// is chosen by the facts known so far.
func (p *places) Learn(f, inner report.RawFrame) {
	var in *Frame
	if !f.Exact && inner.Object != "" {
		in = frameOf(&inner)
	}
	if f.Object == "" {
		return
	}
	p.t.solver.allowed += frameWork
	p.t.cur.learnFrame(frameOf(&f), !f.Exact, in)
	p.solved = false
}

// Frames returns the frames at the address of f, innermost first, if they add a name or a line
// to the report. Otherwise it returns none, and counts f for Options.Unresolved if the report
// has no name either. id is the object's build ID, zero if unknown. Frames waits for debug
// files as the Options allow. The frames must not be modified.
func (p *places) Frames(f report.RawFrame) (frames []symbolize.Frame, id buildid.ID) {
	t := p.t
	if !p.solved {
		t.solver.solveAll(t.cur)
		p.solved = true
	}
	if !p.named {
		t.prefetch(t.cur)
		p.named = true
	}
	s := site{frames: []Frame{*frameOf(&f)}}
	number := uint64(0)
	if !f.Exact {
		number = 1
	}
	t.locateSite(&s, []site{{}}, number)
	var why error
	if s.at != nil {
		got := t.answers.answerFor(&s)
		if id = s.at.of.file.ID; got.improvesOn(&s) {
			t.missing.Named++
			return got.frames, id
		}
		why = got.err
	}
	if f.Func == "" {
		t.countUnresolved(&s, why)
		if len(p.wanted) < maxObjects {
			p.wanted[f.Object] = true
		}
	}
	return nil, id
}

// Close reports each object that has unnamed frames because it was not located. It passes the
// counts of frames to the Options, and closes the object files.
func (p *places) Close() {
	p.t.cur.order = slices.DeleteFunc(p.t.cur.order, func(o *loaded) bool { return !p.wanted[o.name] })
	p.t.finish()
}

// frameOf converts a RawFrame to a Frame of the XML.
func frameOf(f *report.RawFrame) *Frame {
	text := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	return &Frame{IP: f.Addr, Obj: text(f.Object), Fn: text(f.Func), File: text(f.File), Line: f.Line}
}
