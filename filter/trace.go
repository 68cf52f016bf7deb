package filter

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/internal/marks"
)

// Limits of a trace that is held back. At a limit its frames are judged without later lines.
const (
	maxTraceLines = 256      // lines; most programs print at most 128 frames
	maxTraceBytes = 64 << 10 // bytes of the lines of a trace
	// time for which lines of a growing log are held: too short for readers to notice
	maxTraceTime = 250 * time.Millisecond
	// if this many lines are held, a line without a frame ends the stack: all held lines are
	// printed, and the next stack fits
	maxStackStart = maxTraceLines / 4 * 3
	// lines without a frame between two frames of a trace
	maxTraceGap = 8
	// lines without a frame in a kernel's report, which lists registers, code and locks
	maxReportGap = 40
	maxFileLines = 16384   // lines of a trace in a regular file
	maxFileBytes = 4 << 20 // bytes of a trace in a regular file
	// frames in the held lines, 10 MiB: one line may have several hundred
	maxBufferedFrames = 16384
)

// A tracer resolves frames of raw backtraces. It holds back a trace without build IDs until its
// end: a later frame can prove or refute the file of an earlier one. It resolves a frame with a
// build ID at once.
type tracer struct {
	f      *lineFilter
	opt    *Dialects
	reader *dialect.Reader
	past   past

	trace  *judge.Trace // the current trace, or nil
	logged time.Time    // latest time at which its first line was written; zero if unknown
	files  traceFiles
	last   int64 // line of the trace's last frame, or of a later fact
	full   bool  // the trace has reached a limit, and no more of its lines are held back

	buffered    []bufferedLine
	text        []byte // text of the held lines
	printed     int    // held lines already printed; above 0 after a panic in one of them
	expectsMaps bool   // maps may follow the frames: with Whole, the larger limits apply
	// the only held line has a listing; the next line shows whether the log already has it
	listing bool
	before  dialect.State // state of reader, except its windows, before the first held line
	marked  int64         // number of the next line if before is already set for it, else 0
	since   time.Time

	memory  judge.Memory // shared by all traces of the log
	locator locator
	maps    lateMaps
	modules kernelModules
	repeats *repeats // nil unless mayRepeat
	reading reading  // reading of the last line
}

// newTracer returns a tracer for f, or nil without dialects or a Symbolizer.
func newTracer(f *lineFilter) *tracer {
	if f.o.Symbolizer == nil || f.o.Dialects.None {
		return nil
	}
	t := &tracer{f: f, opt: &f.o.Dialects, reader: dialect.NewReader(f.o.Dialects.Only)}
	t.reader.Past, t.reader.RawPast = t.past.last, t.past.searched
	t.reader.Firmware = slices.ContainsFunc(t.opt.Images, func(m Image) bool { return m.Name == "" })
	t.reader.OnX86 = t.reader.Firmware && !slices.ContainsFunc(t.opt.Images, func(m Image) bool { return !judge.IsX86Kernel(m.Path) })
	t.past.unwrap = f.o.Dialects.Unwrap
	t.locator.f = f
	return t
}

// next returns the number of the next line; it counts held lines.
func (t *tracer) next() int64 { return t.f.line + int64(len(t.buffered)-t.printed) + 1 }

// wants reports whether take needs the next line even without a mark.
func (t *tracer) wants() bool {
	return t != nil && (len(t.buffered) > 0 || t.opt.Code || t.reader.Wants(t.next()))
}

// isIdle reports whether t need not get a line that no dialect reads: nothing in t waits for the
// next line. t may be nil.
func isIdle(t *tracer) bool {
	return t == nil || t.printed == 0 && !t.listing && !t.maps.buffered && !t.wants()
}

// firmware reports whether the reader also reads lines that have a number but no mark: see
// dialect.NextFirmware and dialect.IsCounter.
func firmware(t *tracer) bool { return t != nil && t.reader.Firmware }

// searchOf returns a search in b for the marks of t's dialects, or the zero Search if t is nil.
func searchOf(t *tracer, b []byte) marks.Search {
	if t == nil {
		return marks.Search{}
	}
	return marks.NewSearch(b, t.reader)
}

// meaning returns the frames and the map that the dialects find in a line with a mark. plain is set
// if the line has no meaning and no other mark, and if no line is held back. The parameter mark is
// the offset of the line's first mark except ESC, or -1 if unknown. The parameter before is the
// text before the line in the block. The parameter lines is the number of lines at the end of this
// text that are not printed yet.
func meaning(f *lineFilter, before, line []byte, mark, lines int) (means *dialect.Line, plain bool) {
	if f.tracer == nil || len(line) > maxLine || bytes.Contains(line, markupOpen) {
		return nil, false
	}
	if f.openDicts == 0 {
		means = f.tracer.read(line, before, mark, lines)
	}
	return means, means == nil && !mayList(&f.o.Dialects, line) && f.openDicts == 0 && !f.tracer.isBuffering() &&
		(f.o.Color == ColorKeep || f.o.Color == ColorForPrinter || bytes.IndexByte(line, esc) < 0)
}

// read returns the frames and the map in the next line, or nil. past is the text before the line in
// the block. The parameter count is the number of lines at the end of past that are not printed
// yet.
func (t *tracer) read(line, past []byte, mark, count int) (l *dialect.Line) {
	defer func() {
		if fault := recover(); fault != nil {
			l = nil
			t.reader.Reset()
			reportFault(t, fault, int64(count))
		}
	}()
	text, _ := lines.CutEnd(line)
	t.past.block = past
	before, number := t.reader.Facts().Program(), t.next()+int64(count)
	t.mark(number)
	asked, searched := t.reader.Asked()
	decides, inTrace := false, false
	if t.repeats != nil {
		decides, inTrace = t.reader.TextDecides(number, number)
	}
	l = t.reader.LineAt(text, number, mark)
	lines, headers := t.reader.Asked()
	t.reading = reading{decides && lines == asked, inTrace, headers > searched, t.reader.KeepsTrace()}
	if now := t.reader.Facts().Program(); now.Restarts(before) && len(t.buffered) > 0 {
		t.reader.Facts().SetProgram(before) // the held lines are from the program that ran before
		t.release()
		t.reader.Facts().SetProgram(now)
	}
	return l
}

var errFault = errors.New("symfilter failed on the trace; please report this bug")

// locateFrames locates frames. After a panic they stay unlocated.
func locateFrames(t *tracer, frames []*judge.Frame) {
	defer func() {
		if fault := recover(); fault != nil {
			for _, f := range frames {
				f.Place = judge.Place{Err: errFault}
			}
			reportFault(t, fault, 0)
		}
	}()
	t.trace.Judge(frames, t.reader.Facts())
	t.files.charge(t.reader.Quota())
	for _, f := range frames {
		reportTaken(t, f)
		reportRefused(t, f)
	}
}

// reportFault reports a panic of package dialect or judge in a line. lines is the number of earlier
// lines that are not counted yet.
func reportFault(t *tracer, fault any, lines int64) {
	if f := t.f; f.o.Diagnose != nil {
		stack := debug.Stack()
		f.o.Diagnose(Diagnostic{Line: t.next() + lines, Byte: 1, Message: fmt.Sprintf("symfilter failed on this line, which is printed unchanged; please report this bug: %v\n%s", fault, stack[:min(len(stack), maxStack)])})
	}
}

// reportDoubt reports that m, whose names were already printed, is not the file that ran.
func reportDoubt(t *tracer, m *judge.Image) {
	if t.f.o.Diagnose != nil {
		t.f.o.Diagnose(Diagnostic{Line: t.next(), Byte: 1, Message: fmt.Sprintf("%s is not the file that ran, as this backtrace shows: names from this file in earlier backtraces of the process may be wrong; --image NAME=FILE names the right file", m.Path)})
	}
}

// changesBefore reports whether an answer for one of the frames would change the first n bytes of
// the line, which Flush has printed.
func changesBefore(frames []dialect.Frame, n int) bool {
	if n == 0 {
		return false
	}
	for i := range frames {
		f := &frames[i]
		if f.Inline == dialect.InlinedByBefore || f.Inline == dialect.InlineMarked || f.Inline == dialect.InlineNumbered ||
			f.Digits.To > 0 && f.Digits.From < n || len(f.Edits) > 0 && f.Edits[0].From < n {
			return true
		}
	}
	return false
}

// take filters b, the next line, with or without its line end. The frames and the map in b are in
// l, which may be nil.
func (t *tracer) take(b []byte, l *dialect.Line) {
	t.endLast(b)
	number := t.next()
	frames, isMap := t.framesOf(l), l != nil && l.Map
	if t.maps.buffered && !isMap {
		t.endMaps(b)
	}
	if isMap && t.mapLine(b, l.MapStart) {
		return
	}
	if t.maps.complete && len(t.buffered) == 0 && len(frames) > 0 {
		t.end()
		t.reader.AgeMaps(number)
	}
	// the element was made from a frame that an earlier run has located
	if t.trace != nil && l == nil && bytes.Contains(b, inventedMark) {
		t.last = number
	}
	switch {
	case len(frames) > 0 && !t.maps.await(frames):
		t.takeFrames(b, frames, l.Holds)
	case len(t.buffered) == 0:
		t.takeOutside(b)
	default:
		t.takeWithin(b, l != nil)
	}
}

// endLast compares b, the next line, with the last held line, whose listing or answers b may have.
// If the last line was held only for this comparison, endLast prints it.
func (t *tracer) endLast(b []byte) {
	if t.printed > 0 {
		t.release() // a panic interrupted the last release
	}
	if n := len(t.buffered); n > 0 {
		last := &t.buffered[n-1]
		last.listed = isListed(t.opt, t.text[last.from:last.to], b)
	}
	if t.listing {
		t.release()
	}
	dropAnswered(t.buffered, b)
}

// mark stores the state of the reader in t.before, unless lines are held back. number is the number
// of the line that is read next.
func (t *tracer) mark(number int64) {
	if len(t.buffered) == 0 && t.marked != number {
		t.reader.Mark(&t.before)
	}
	t.marked = 0
}

// framesOf returns the frames of l, which are not located yet. It returns none if an answer would
// change text that Flush has printed. The frames are valid until the next call.
func (t *tracer) framesOf(l *dialect.Line) []judge.Frame {
	c := &t.locator
	c.frames = c.frames[:0]
	if l != nil && !changesBefore(l.Frames, t.f.flushed.text) {
		c.frames = judge.Unplaced(c.frames, l.Frames)
	}
	return c.frames
}

// endMaps ends a process's list of maps because b, the next line, has no map. It prints the held
// line with the last map.
func (t *tracer) endMaps(b []byte) {
	if t.maps.isNote(b) { // the log was filtered before
		t.maps.unresolved = 0
	}
	t.release()
	t.maps.complete = true
}

// takeOutside filters a line without frames while no line is held back.
func (t *tracer) takeOutside(b []byte) {
	t.full = false // the next stack may be held back
	if t.opt.NoHold || len(listingOf(t.opt, b).lines) == 0 {
		t.printUnframed(b, false)
		return
	}
	t.begin()
	t.buffer(b, nil)
	t.listing = true
}

// takeWithin filters a line without frames after held lines. isFact is set if the line has a map or
// another fact about modules.
func (t *tracer) takeWithin(b []byte, isFact bool) {
	number := t.next()
	t.buffer(b, nil)
	if isFact {
		t.last = number
	}
	if !t.expectsMaps && (number-t.last > gap(t) || len(t.buffered) >= maxStackStart) || t.late() {
		t.release()
	}
}

// takeFrames filters a line with frames. holds is set if maps may follow the frames.
func (t *tracer) takeFrames(b []byte, frames []judge.Frame, holds bool) {
	number := t.next()
	t.endOld(number)
	if number-t.last > 1 || len(t.buffered) > 0 && t.buffered[len(t.buffered)-1].lacksFrame() {
		frames[0].Apart = true
	}
	sure := t.placeAlone(frames)
	// in a log that was filtered before, the next line has the answers
	listed := frames[0].Below != "" || frames[0].PlaceBelow
	if !sure || listed {
		t.begin()
	}
	if !sure || listed || frames[0].Kernel != nil {
		t.last = number
	}
	if len(t.buffered) == 0 && ((sure || t.full) && !listed || t.opt.NoHold) {
		t.printNow(b, frames, sure)
		return
	}
	t.expectsMaps = t.expectsMaps || holds
	if fits := t.hasRoom(len(b), len(frames)); listed && (!fits || t.late()) {
		t.release() // only the earlier lines: the next line may have this line's answers
		t.full = t.full || !fits && !t.trace.Apart()
	}
	t.reading.alone = t.reading.alone && !sure && !holds && isAlone(b, frames)
	t.buffer(b, frames)
	if t.late() {
		t.release()
	}
}

// placeAlone sets the Place of each frame that can be located without its trace: by its build ID,
// or by an earlier equal frame. It reports whether all frames then have a Place.
func (t *tracer) placeAlone(frames []judge.Frame) (sure bool) {
	sure = true
	for i := range frames {
		f := &frames[i]
		sure = (f.PlaceByID() || t.trace != nil && t.trace.PlaceKnown(f)) && sure
	}
	return sure
}

// endOld ends the current stack, and the current trace, if the last frame is too many lines before
// the given line.
func (t *tracer) endOld(number int64) {
	if t.trace == nil || len(t.buffered) > 0 {
		return
	}
	if number-t.last > maxTraceGap {
		t.trace.EndStack()
	}
	if number-t.last > t.trace.Lasts() {
		t.end()
		t.reader.AgeMaps(t.last)
	}
}

// printNow prints a line with frames without holding it back. sure is set if the frames are
// located.
func (t *tracer) printNow(b []byte, frames []judge.Frame, sure bool) {
	for i := range frames {
		// without the next line, it is unknown whether the log already has the answer
		frames[i].Named = frames[i].Named || frames[i].PlaceBelow
	}
	if !sure {
		locateFrames(t, pointers(frames))
	}
	t.print(b, frames)
}

// begin begins a trace if there is no current one.
func (t *tracer) begin() {
	if t.trace != nil {
		return
	}
	if t.logged = (time.Time{}); t.opt.Logged != nil {
		t.logged = t.opt.Logged()
	}
	t.files.open(t.opt)
	t.trace = &judge.Trace{
		Open: t.openModule, Named: t.byName, Unnamed: t.unnamed, Demangle: t.f.o.Symbolizer.Demangle, Complete: t.opt.Complete,
		Quota: t.reader.Quota(), Memory: &t.memory, Doubt: func(m *judge.Image) { reportDoubt(t, m) },
		Inferred: func(m *judge.Image, base uint64, by judge.Inference) {
			t.f.bases = addBases(t.f.bases, []Base{{m.Path, base, by.String()}})
		},
		Loaded: func(p *judge.ProcessMap) { t.f.bases = addBases(t.f.bases, []Base{baseOf(p)}) },
	}
	if t.opt.Mapped != nil {
		t.trace.Mapped = func(addr uint64) *judge.ProcessMap { return mappedAt(t, addr) }
	}
}

func (t *tracer) openModule(f *dialect.Frame) *judge.Image {
	if f.Kernel != nil {
		return kernelFile(t, f)
	}
	return t.open(f)
}

func (t *tracer) end() {
	t.endTrace()
	t.full, t.expectsMaps = false, false
	t.maps.forget()
}

// endTrace ends the current trace and forgets its verdicts on modules.
func (t *tracer) endTrace() {
	t.trace = nil
	t.locator.forget()
}

// buffer holds a line back. At a limit it prints all held lines.
func (t *tracer) buffer(b []byte, frames []judge.Frame) {
	if len(t.buffered) == 0 {
		t.since = time.Now()
	}
	from := len(t.text)
	t.text = append(t.text, b...)
	upTo := len(frames)
	if n := len(t.buffered); n > 0 {
		upTo += t.buffered[n-1].upTo
	}
	t.buffered = append(t.buffered, bufferedLine{from: from, to: len(t.text), frames: judge.Clone(frames), upTo: upTo, reading: t.reading})
	if !t.hasRoom(0, 0) {
		t.release()
		t.full = !t.trace.Apart()
	}
}

// hasRoom reports whether another line may be held back after a line with this many bytes and
// frames. If size and frames are 0, the line is already held.
func (t *tracer) hasRoom(size, frames int) bool {
	lines, bytes := t.limits()
	held := len(t.buffered)
	if held > 0 {
		frames += t.buffered[held-1].upTo
	}
	if size > 0 {
		held++
	}
	return held < lines && len(t.text)+size < bytes && frames < maxBufferedFrames
}

// limits returns the number of lines and bytes that may be held back.
func (t *tracer) limits() (lines, bytes int) {
	if t.opt.Whole && t.expectsMaps {
		return maxFileLines, maxFileBytes
	}
	return maxTraceLines, maxTraceBytes
}

// gap returns the number of lines without a frame that may follow the last line with a frame in its
// trace.
func gap(t *tracer) int64 {
	for i := len(t.buffered) - 1; i >= max(0, len(t.buffered)-maxReportGap); i-- {
		if t.buffered[i].repeated {
			break // no frame of a repeat awaits further lines
		}
		if frames := t.buffered[i].frames; len(frames) > 0 {
			if frames[0].Awaits {
				return maxReportGap
			}
			break
		}
	}
	return maxTraceGap
}

// late reports whether lines have been held back for more than maxTraceTime, unless Whole is set.
func (t *tracer) late() bool {
	return t.isBuffering() && !t.opt.Whole && time.Since(t.since) > maxTraceTime
}

func (t *tracer) isBuffering() bool { return t != nil && len(t.buffered) > 0 }

func (t *tracer) bufferedText() []byte { return t.text[t.buffered[t.printed].from:] }

func (t *tracer) firstBuffered() int64 {
	if !t.isBuffering() {
		return 0
	}
	return t.f.line + 1
}

// forget forgets all traces, because the next line is from another log.
func (t *tracer) forget() {
	if t != nil {
		t.end()
		t.reader.Reset()
		t.memory.ForgetRuns()
		t.past.tail = t.past.tail[:0]
		t.locator.stacks = [maxStacks]stack{}
	}
}

func (t *tracer) close() {
	if t != nil {
		t.end()
		t.files.close()
	}
}

func (t *tracer) release() {
	if t == nil || len(t.buffered) == 0 {
		return
	}
	var runs []heldRun
	if t.printed == 0 {
		if t.trace != nil && t.files.changed(t.f.unixNow()) {
			t.endTrace() // its verdicts are about replaced files
		}
		t.begin()
		if !judgeAgain(t) {
			runs = locateHeld(t)
			defer t.locator.resolveAhead(t.buffered)()
		}
	}
	for t.printed < len(t.buffered) {
		l := &t.buffered[t.printed]
		if len(runs) > 0 && runs[0].from == t.printed {
			run := runs[0]
			runs = runs[1:]
			t.repeats.learn(t, run, t.lay)
			continue
		}
		t.printed++
		b := t.text[l.from:l.to]
		switch {
		case l.again != nil:
			t.printed += len(l.again.ends) - 1
			printAgain(t, l.again)
		case len(l.frames) > 0:
			t.print(b, l.frames)
		case t.maps.buffered && t.printed == len(t.buffered):
			t.maps.buffered = false
			t.printMap(b)
		default:
			t.printUnframed(b, l.listed)
		}
	}
	t.expectsMaps, t.listing = false, false
	t.buffered, t.text, t.printed = t.buffered[:0], t.text[:0], 0
	if cap(t.text) > 4*maxTraceBytes {
		t.buffered, t.text = nil, nil
	}
}

// locateHeld locates the frames of the held lines, and returns the stacks that may become repeats.
func locateHeld(t *tracer) []heldRun {
	unfold(t.buffered)
	var all []*judge.Frame
	for i := range t.buffered {
		all = append(all, pointers(t.buffered[i].frames)...)
	}
	locateFrames(t, all)
	return t.repeats.heldRuns(t, all)
}

func (t *tracer) print(b []byte, frames []judge.Frame) {
	t.lay(b, frames)
	t.f.sendLarge()
}

// lay lays out a line with located frames. It does not send the output.
func (t *tracer) lay(b []byte, frames []judge.Frame) {
	f := t.f
	f.ahead.reach(t.printed)
	text, eol := t.enterLine(b)
	f.layOutInPlace()
	t.locator.line(text, eol, frames)
	f.current.text = nil
	t.maps.keep(frames)
}

// mapLine holds back b, a line with a map at start, if frames may need the map. It reports whether
// the line is held back.
func (t *tracer) mapLine(b []byte, start int) bool {
	m := &t.maps
	if t.opt.NoHold || len(t.buffered) == 0 && m.unresolved == 0 {
		return false
	}
	if m.buffered && len(t.buffered) == 1 { // footnotes follow the last map only
		m.buffered = false
		t.release()
	}
	t.buffer(b, nil)
	m.buffered, m.start = len(t.buffered) > 0, start
	return true
}

// printMap prints b, a process's last map, and the footnotes after it.
func (t *tracer) printMap(b []byte) {
	m := &t.maps
	notes := t.lateNotes()
	if len(notes) == 0 {
		t.printUnframed(b, false)
		return
	}
	f := t.f
	text, eol := t.enterLine(b)
	f.layout.LogBytes(text)
	between := eol
	if len(between) == 0 {
		between = newline
	}
	prefix := text[:min(m.start, maxRepeat)]
	for i := range notes {
		t.locator.note(prefix, between, &notes[i])
	}
	f.endLine(eol)
	f.sendLarge()
	f.current.text = nil
}

// lateNotes returns the frames that only the last maps located, one for each address.
func (t *tracer) lateNotes() (notes []judge.Frame) {
	m := &t.maps
	if m.unresolved == 0 {
		return nil
	}
	if m.tries++; m.tries > maxLateTries {
		m.unresolved = 0
		return nil
	}
	open := make([]bool, len(m.frames))
	for i := range m.frames {
		f := &m.frames[i]
		open[i] = f.Place.Err != nil
		if f.Number < 0 {
			f.Number = i
		}
	}
	t.endTrace()
	t.begin()
	locateFrames(t, pointers(m.frames))
	type place struct {
		module string
		addr   uint64
	}
	seen := make(map[place]bool)
	for i := range m.frames {
		f := &m.frames[i]
		if !open[i] || f.Place.Err != nil {
			continue
		}
		m.unresolved--
		if at := (place{f.Module, f.Place.Addr}); !seen[at] {
			seen[at] = true
			notes = append(notes, *f)
		}
	}
	return notes
}

// printUnframed prints a line without frames and its listing. If listed is set, the log already has
// the listing.
func (t *tracer) printUnframed(b []byte, listed bool) {
	l := listingOf(t.opt, b)
	if listed || len(l.lines) == 0 || t.f.openDicts > 0 || t.opt.Elements {
		t.f.lineOf(b)
		return
	}
	text, eol := t.enterLine(b)
	t.f.layOutInPlace()
	printListing(t.f, text, eol, l)
}

// enterLine begins the line b, and cuts it into its text and line end.
func (t *tracer) enterLine(b []byte) (text, eol []byte) {
	f := t.f
	f.line++
	f.dictLookups = 0
	f.printOf(f.line)
	f.current.text = b
	text, eol = lines.CutEnd(b)
	if f.o.ProcessKey != nil {
		f.enterProcess(text)
	}
	f.closeModule()
	return text, eol
}

func pointers(frames []judge.Frame) []*judge.Frame {
	all := make([]*judge.Frame, len(frames))
	for i := range frames {
		all[i] = &frames[i]
	}
	return all
}
