package rtrace

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
)

// newFinder implements inner.NewFindings.
func newFinder(s *findings.Collection, input string, own *findings.Own, o Options) io.WriteCloser {
	o.Processing.Leaks, o.Processing.Compress = true, true
	f := &finder{to: s, input: input, own: own, process: -1}
	f.translator = newTranslator(&o, f.take)
	return f
}

// A finder makes findings from groups of calls.
type finder struct {
	*translator
	to      *findings.Collection
	input   string
	own     *findings.Own
	process int // number of the current process in the findings; -1 without one
	begun   bool

	first  string // first type in the report's list, for calls without a type
	leaks  []leak // leaks of the current group, by type
	frames []findings.TraceFrame
	framed bool
}

// A leak sums up the unfreed resources of one type in a group, whose calls share a backtrace.
type leak struct {
	kind          string
	blocks, bytes uint64
}

// maxLeakTypes bounds the resource types of a group. Resources of further types are added to the
// last of these types.
const maxLeakTypes = 64

// Close adds the leaks of the last group to the findings. It adds the number of calls that
// Processing left out for lack of memory to the Collection's count Left.
func (f *finder) Close() error {
	err := f.translator.Close()
	f.finish()
	f.to.Left += f.lostCalls()
	return err
}

// take adds an allocation or a frame to the current group. At the end of a group, it adds the
// group's leaks to the findings.
func (f *finder) take(rec *record) error {
	switch rec.Kind {
	case headerRecord:
		f.finish()
		if f.begun {
			f.space.reset()
		}
		f.process = -1
		f.first = ""
		f.begin(rec)
	case mapRecord:
		f.mapped(rec)
	case resourceRecord:
		if f.first == "" {
			f.first = string(rec.Name)
		}
	case allocRecord:
		if !rec.Joined || f.framed {
			f.finish()
		}
		f.begin(nil)
		f.call(rec)
	case frameRecord:
		if len(f.leaks) > 0 {
			f.framed = true
			f.frames = f.frame(f.frames, rec)
		}
	case blankRecord:
		f.finish()
	}
	f.begun = true
	return nil
}

// begin adds a process to the findings, unless the current report already has one. If header is
// nil, the process has neither a PID nor a command. Each process is marked as complete, since the
// format does not mark the end of a report.
func (f *finder) begin(header *record) {
	if f.process >= 0 {
		return
	}
	p := findings.Process{Input: f.input, Source: findings.FromRTrace, Tool: tool, Complete: true}
	if header != nil {
		p.PID = string(header.headerValue("pid"))
		if name := header.headerValue("process"); len(name) > 0 {
			p.Command = strings.Fields(string(name))
		}
	}
	f.process = f.to.Begin(p)
}

const tool = "rtrace" // the tool of all findings

// call adds an allocation to the current group.
func (f *finder) call(rec *record) {
	kind := string(rec.Type)
	if rec.Type == nil {
		kind = f.first
	}
	if kind == "" {
		kind = "resource"
	}
	at := slices.IndexFunc(f.leaks, func(l leak) bool { return l.kind == kind })
	if at < 0 {
		if len(f.leaks) < maxLeakTypes {
			f.leaks = append(f.leaks, leak{kind: kind})
		}
		at = len(f.leaks) - 1
	}
	l := &f.leaks[at]
	l.blocks++
	l.bytes += uint64(max(0, rec.Size))
}

func (f *finder) finish() {
	var frames []*findings.TraceFrame
	if len(f.leaks) > 0 {
		frames = findings.Refer(slices.Clone(f.frames))
	}
	for i := range f.leaks {
		l := &f.leaks[i]
		x := &findings.Finding{
			Source: findings.FromRTrace, Tool: tool, Kind: l.kind, Bytes: l.bytes, Blocks: l.blocks,
			Message: fmt.Sprintf("%d bytes of %s in %d blocks were not freed", l.bytes, l.kind, l.blocks),
		}
		if len(frames) > 0 {
			x.Traces = []findings.Trace{{Frames: frames}}
		}
		x.Identify(f.own)
		if f.process < 0 {
			f.to.Left++
			continue
		}
		f.to.Add(f.process, x, 1)
	}
	f.leaks, f.frames, f.framed = f.leaks[:0], f.frames[:0], false
}

// frame appends the symbolizer's frames at the address of rec, if they are better than the report's
// frames. Otherwise it appends the report's frames, or a frame without a name.
func (t *translator) frame(dst []findings.TraceFrame, rec *record) []findings.TraceFrame {
	s := t.space.site(rec)
	place := findings.TraceFrame{Address: rec.Addr}
	if s.at != nil {
		place.Object = s.at.path
	}
	var err error
	if s.usable() {
		place.ID, place.Offset = s.at.file.ID, s.rel
		a := t.answers.ask(s)
		if a.better(rec) {
			t.missing.Named++
			for i := range a.Frames {
				place.Frame = t.o.report().Shown(&a.Frames[i])
				dst = append(dst, place)
			}
			return dst
		}
		err = a.Err
	}
	t.miss(rec, s, err)
	n := len(dst)
	for i, text := range rec.Reported {
		if sym := parseSymbol(text); sym.function != nil || sym.file != nil {
			at := place
			at.Func = strings.TrimSuffix(string(sym.function), "()")
			at.Linkage = at.Func
			at.File, at.Line, at.HasLine = t.o.report().ShownFile(string(sym.file)), uint32(min(sym.line, 1<<32-1)), sym.line > 0
			at.Inlined = i < len(rec.Reported)-1
			dst = append(dst, at)
		}
	}
	if len(dst) == n {
		dst = append(dst, place)
	}
	return dst
}
