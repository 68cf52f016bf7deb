package faults

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/backtrace"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/lines"
)

var newline = []byte{'\n'}

// A Finder is a [filter.Printer] that prints nothing, and adds the faults in a log to a collection:
//
//   - the reports of sanitizers, as markup, as raw frames, or symbolized when they were logged
//   - crashes: backtraces after a crash message, such as a signal, a failed assertion, a panic or
//     an oops of a kernel
//
// A backtrace without such a message is not a finding: programs log backtraces for many reasons.
//
// Each PID in reports is a process. So is the log itself, if a report has no PID, or if there is no
// other process. A process is complete unless the end of one of its sanitizer reports is missing.
// Equal reports of a process are one finding that occurred several times.
//
// A Finder takes at most about 8 MiB besides the findings. It is for one Filter. Only the goroutine
// that uses the findings may use it.
type Finder struct {
	backtrace.Grouping
	to    *findings.Collection
	input string
	own   *findings.Own
	paths filter.Paths

	open   logReport
	pids   map[string]int
	known  map[knownReport]*findings.Finding
	stacks map[uint64][]*findings.TraceFrame // stacks of answers, by hash
	same   map[identity]*findings.Finding    // findings by the inputs of their fingerprints
	seed   maphash.Seed
	text   []byte // scratch: the bytes to hash
}

var _ filter.LogPrinter = (*Finder)(nil)

// NewFinder returns a Finder that adds its findings to a collection. input is the name of the
// log. own distinguishes the program's frames from the system's. paths sets the form of files
// in the log's text, like [filter.Options.Paths] for files in answers.
func NewFinder(to *findings.Collection, input string, own *findings.Own, paths filter.Paths) *Finder {
	return &Finder{
		to: to, input: input, own: own, paths: paths,
		pids: make(map[string]int), known: make(map[knownReport]*findings.Finding), stacks: make(map[uint64][]*findings.TraceFrame),
		same: make(map[identity]*findings.Finding), seed: maphash.MakeSeed(),
	}
}

// Bounds of a Finder.
const (
	maxFoundLine   = 2 << 10  // bytes read of a line
	maxTraces      = 32       // traces of a finding; a deadlock of n threads has 2n
	maxDetails     = 16       // lines of a report kept besides its message
	maxKnown       = 32 << 10 // reports and PIDs remembered
	maxFoundStacks = 1 << 10  // stacks, and reports with a fingerprint, remembered
	maxQuiet       = 256      // lines without a frame that end a report
	maxQuietError  = 8        // the same after a runtime error: the bytes around a pointer, at most
	maxQuietCrash  = 64       // the same after a crash: registers, code and the memory around them
	maxCrashTraces = 4        // traces of a crash; further ones belong to other threads
)

// A knownReport is a report of a process.
type knownReport struct {
	process int
	hash    uint64
}

// An identity is a key that equal reports of different processes share.
type identity struct {
	hash    uint64
	message string
}

// A reportMode is the type of an open report.
type reportMode uint8

const (
	noReport       reportMode = iota
	ofSanitizer               // ends with its summary
	ofLeaks                   // ends with its summary; each stack is a finding
	ofRuntimeError            // a line of UBSan, with or without a stack
	ofCrash
)

// A logReport is the open report of a log.
type logReport struct {
	mode   reportMode
	x      findings.Finding
	pid    string
	prefix string // text before the report in its first line, such as a time
	said   string // the last line since the last stack, which may introduce the next one
	quiet  int    // lines since the last stack
	single bool   // the crash has only one stack, of one frame
}

// AppendElement keeps e's answer, which may be a frame, and appends the bytes that identify it.
func (f *Finder) AppendElement(dst []byte, e *filter.Element) []byte {
	if e.Answer == nil {
		return dst
	}
	return f.Hold(dst, &backtrace.Held{Answer: *e.Answer})
}

// AppendLine reads a line. It appends nothing.
func (f *Finder) AppendLine(dst []byte, l *filter.Line) []byte {
	switch {
	case len(l.Frames) > 0 && !l.Continues && !hasSummary(l.Text):
		f.AddFrames(l, f.endStack)
	case !l.Continues && f.AddBetween(l.Text, true):
	default:
		f.endStack()
		f.line(l.Text)
	}
	if len(l.Elements) > 0 {
		f.Release(l.Elements)
	}
	return dst
}

// Begin sets the options that a Finder needs: plain text, without lines of modules.
func (f *Finder) Begin(o *filter.Options) {
	o.Terminal, o.Color, o.ModuleLines, o.Display = false, filter.ColorNever, filter.ModuleLinesNone, filter.Display{Own: o.Display.Own}
}

// AppendLines reads lines without elements. If a stack is open, it reads nothing, and ok is false.
// Outside of a report, it examines only lines that may begin a report.
func (f *Finder) AppendLines(dst, whole []byte) (_ []byte, ok bool) {
	if f.IsOpen() {
		return dst, false
	}
	for len(whole) > 0 {
		if f.open.mode == noReport {
			next := nextReportLine(whole)
			f.KeepTail(whole[:next])
			if whole = whole[next:]; len(whole) == 0 {
				break
			}
		}
		end := bytes.IndexByte(whole, '\n') + 1
		if end == 0 {
			end = len(whole)
		}
		text, _ := lines.CutEnd(whole[:end])
		f.line(text)
		whole = whole[end:]
	}
	return dst, true
}

// endStack reads the stack, if one is open, and the lines after it.
func (f *Finder) endStack() {
	f.End(f.readStack, func(text []byte, _ bool) { f.line(text) })
}

func (f *Finder) readStack(s *backtrace.Stack) {
	frames := f.frames(s)
	single := s.IsSingle()
	if len(s.Answers) > 0 && s.Answers[0].Dialect == "kernel" { // BUG: KASAN: … in f+0x40/0x80
		f.KeepTail(s.Text(0))
		f.KeepTail(newline)
	}
	minimal, isMinimal := findings.Finding{}, false
	if single {
		minimal, isMinimal = minimalError(s.Text(0))
	}
	switch {
	case s.Cut || len(frames) == 0:
	case isMinimal:
		f.end(f.open.mode == ofRuntimeError || f.open.mode == ofCrash)
		minimal.Traces = []findings.Trace{{Frames: frames}}
		f.add(&minimal, "")
	default:
		f.trace(frames, single)
	}
}

// line reads a line that is not a frame.
func (f *Finder) line(text []byte) {
	text = bytes.TrimRight(text[:min(len(text), maxFoundLine)], " \t")
	if isReportLine(text) {
		h, ok := runtimeError(text)
		if !ok {
			h, ok = headerOf(text)
		}
		if ok {
			f.begin(&h, string(text[:h.at]))
			return
		}
		if hasSummary(text) && f.open.mode != noReport && f.open.mode != ofCrash {
			f.summary(text)
			return
		}
	}
	r := &f.open
	switch r.quiet++; r.mode {
	case ofSanitizer, ofLeaks:
		f.within(text)
		return
	case ofRuntimeError:
		if r.quiet > maxQuietError {
			f.end(true)
		}
	case ofCrash:
		if r.quiet > maxQuietCrash {
			f.end(true)
		}
	}
	f.KeepTail(text)
	f.KeepTail(newline)
}

// begin ends the open report, if any, and begins one with header h.
func (f *Finder) begin(h *reportHeader, prefix string) {
	f.end(f.open.mode == ofRuntimeError || f.open.mode == ofCrash)
	f.open = logReport{mode: h.mode, pid: h.pid, prefix: prefix}
	f.open.x = findings.Finding{Tool: h.tool, Kind: h.kind, Message: h.message, Memory: memoryOfKind(h.kind)}
	if h.file != "" {
		at := &findings.TraceFrame{}
		at.File, at.Line, at.Column, at.HasLine = f.paths.Shown(h.file), h.line, h.column, h.line > 0
		f.open.x.Traces = []findings.Trace{{Frames: []*findings.TraceFrame{at}}}
	}
	f.DropTail()
}

// within reads a line of an open report of a sanitizer. The report ends at a line "ABORTING", or is
// cut off after maxQuiet lines without a stack.
func (f *Finder) within(text []byte) {
	r := &f.open
	if r.quiet > maxQuiet {
		f.end(false)
		return
	}
	line := strings.TrimSpace(strings.TrimPrefix(string(text), r.prefix))
	if pid := "==" + r.pid + "=="; r.pid != "" {
		line = strings.TrimSpace(strings.TrimPrefix(line, pid))
	}
	switch {
	case line == "":
		return
	case line == "ABORTING":
		f.end(true)
		return
	case r.mode == ofLeaks:
		f.leak(nil) // a leak without a stack
		r.said = line
		return
	case len(r.x.Traces) == 0:
		f.access(line)
	}
	if d := detailIn(line); d != "" {
		if len(r.x.Detail) < maxDetails {
			r.x.Detail = append(r.x.Detail, d)
		}
		if strings.HasPrefix(d, "Cause: ") && r.x.Memory == findings.MemoryUnknown {
			r.x.Memory = memoryOfKind(d)
		}
		if !strings.HasSuffix(line, ":") { // a line before a stack
			return
		}
	}
	r.said = line
}

// access adds the access in line, which precedes the first stack, to the message.
func (f *Finder) access(line string) {
	x := &f.open.x
	if a := accessIn(line); a != "" && !strings.Contains(x.Message, ": ") {
		x.Message += ": " + a
	}
}

// summary reads the last line of a report.
func (f *Finder) summary(text []byte) {
	if x := &f.open.x; x.Kind == "" {
		x.Kind = kindInSummary(text)
		x.Memory = memoryOfKind(x.Kind)
	}
	f.end(true)
}

// leak adds the leak that the last line reports, if any, with the frames of its stack.
func (f *Finder) leak(frames []*findings.TraceFrame) {
	r := &f.open
	x, ok := leakIn(r.said)
	r.said = ""
	if !ok {
		return
	}
	x.Tool = r.x.Tool
	if len(frames) > 0 {
		x.Traces = []findings.Trace{{Frames: frames}}
	}
	f.add(&x, r.pid)
}

// trace adds a stack to the open report of a sanitizer. Otherwise the stack may begin or continue a
// crash: see crash.
func (f *Finder) trace(frames []*findings.TraceFrame, single bool) {
	r := &f.open
	r.quiet = 0
	switch said := r.said; r.mode {
	case ofLeaks:
		f.leak(frames)
		return
	case ofSanitizer:
		if len(r.x.Traces) == 0 {
			f.access(said)
			r.x.Traces = append(r.x.Traces, findings.Trace{Message: said, Frames: frames})
		} else if len(r.x.Traces) < maxTraces {
			r.x.Traces = append(r.x.Traces, findings.Trace{Role: roleOf([]byte(said)), Message: said, Frames: frames})
		}
		r.said = ""
		return
	case ofRuntimeError:
		if at := r.x.Traces; len(at) > 0 && len(at[0].Frames) == 1 && at[0].Frames[0].Object == "" {
			r.x.Traces = []findings.Trace{{Frames: withLine(frames, at[0].Frames[0])}}
			return
		}
	}
	f.crash(frames, single)
	f.DropTail()
}

// withLine returns frames if one of them has a line. Otherwise it returns a copy of frames, and
// gives the innermost frame the file and line of the frame at. It does not change the frames
// themselves, which other findings may share.
func withLine(frames []*findings.TraceFrame, at *findings.TraceFrame) []*findings.TraceFrame {
	if slices.ContainsFunc(frames, func(f *findings.TraceFrame) bool { return f.HasLine }) {
		return frames
	}
	f := frames[0]
	first := &findings.TraceFrame{Frame: f.Frame, Object: f.Object, ID: f.ID, Address: f.Address, Offset: f.Offset}
	first.File, first.Line, first.Column, first.HasLine = at.File, at.Line, at.Column, at.HasLine
	return append([]*findings.TraceFrame{first}, frames[1:]...)
}

// crash begins a crash with a stack if a line before it is a crash message. Otherwise it adds
// the stack to the open crash, if any.
func (f *Finder) crash(frames []*findings.TraceFrame, single bool) {
	r := &f.open
	if x, ok := crashIn(f.Tail()); ok {
		f.end(true)
		x.Traces = []findings.Trace{{Frames: frames}}
		f.open = logReport{mode: ofCrash, x: x, single: single}
		return
	}
	switch {
	case r.mode != ofCrash:
		f.end(true)
	case r.single: // the first frame was a register, and this is its stack
		r.x.Traces[0].Frames = slices.Concat(r.x.Traces[0].Frames, frames)
		r.single = false
	case len(r.x.Traces) < maxCrashTraces:
		r.x.Traces = append(r.x.Traces, findings.Trace{Role: findings.RoleOther, Frames: frames})
	}
}

// end ends the open report. whole is false if the report's end is missing.
func (f *Finder) end(whole bool) {
	r := f.open
	f.open = logReport{}
	switch r.mode {
	case noReport:
		return
	case ofLeaks:
		f.open = r
		f.leak(nil)
		f.open = logReport{}
	default:
		f.add(&r.x, r.pid)
	}
	if p := f.to.Process(f.process(r.pid, r.x.Tool)); p != nil && !whole {
		p.Complete = false
	}
}

// process returns the number of the process with this PID, or of the log if pid is empty. It adds
// the process to the collection if the PID is new.
func (f *Finder) process(pid, tool string) int {
	n, known := f.pids[pid]
	if known {
		return n
	}
	if len(f.pids) >= maxKnown {
		clear(f.pids)
	}
	p := findings.Process{Input: f.input, Source: findings.FromLog, PID: pid, Complete: true}
	if pid != "" {
		p.Tool = tool
	}
	n = f.to.Begin(p)
	f.pids[strings.Clone(pid)] = n
	return n
}

func (f *Finder) add(x *findings.Finding, pid string) {
	p := f.process(pid, x.Tool)
	if p < 0 {
		f.to.Left++
		return
	}
	x.Source = findings.FromLog
	if x.Kind == "" {
		x.Kind = "error"
	}
	if x.Message == "" {
		x.Message = x.Kind
	}
	h := f.hash(x)
	k := knownReport{p, h}
	if known := f.known[k]; known != nil {
		f.to.Occurred(known, p, 1)
		return
	}
	kept := *x
	same := identity{h, x.Message}
	if twin := f.same[same]; twin != nil {
		kept.Fingerprint, kept.Own = twin.Fingerprint, twin.Own
	} else {
		kept.Identify(f.own)
		if len(f.same) >= maxFoundStacks {
			clear(f.same)
		}
		f.same[same] = &kept
	}
	if len(f.known) >= maxKnown {
		clear(f.known)
	}
	if added := f.to.Add(p, &kept, 1); added != nil {
		f.known[k] = added
	}
}

// AppendEnd adds the report that the end of the log cuts off. If there is no process, the log
// becomes one. It appends nothing.
func (f *Finder) AppendEnd(dst []byte) []byte {
	f.endStack()
	f.end(f.open.mode == ofRuntimeError || f.open.mode == ofCrash)
	if len(f.pids) == 0 {
		f.process("", "")
	}
	return dst
}
