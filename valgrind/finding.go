package valgrind

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/findings"
)

// newFinder implements inner.NewFindings.
func newFinder(s *findings.Collection, input string, own *findings.Own, o Options) io.WriteCloser {
	f := &finder{o: &o, t: newTracker(&o), to: s, input: input, own: own}
	f.answers = f.t.answers
	f.Reader = NewReader(f.take)
	return f
}

// A finder makes findings from records.
type finder struct {
	*Reader
	o       *Options
	t       *tracker
	answers *answerer
	to      *findings.Collection
	input   string
	own     *findings.Own

	sites  []site
	stack  []*findings.TraceFrame // scratch: the current stack
	shared sharing
	texts  map[string]string // kinds and texts of earlier errors, to share their memory
	runs   map[int]*run      // by the process's number in the report
	byPID  map[string]int    // by PID: the last process's number in the findings
}

// A run is the state of one process in the findings.
type run struct {
	number   int                // number of the process in the findings
	errors   map[string]counted // by their unique numbers
	finished bool               // the process has the state FINISHED
	// threads holds the stacks that created threads, by Helgrind's thread number.
	threads map[string]findings.Trace

	// stub is set while the command line is the last record of the report. A report that ends there
	// is of a forked child whose program Valgrind does not trace. In other reports, the state
	// RUNNING follows.
	stub bool
}

// A counted is an error of a process, with its number of occurrences in the last error counts.
type counted struct {
	finding *findings.Finding
	count   uint64 // occurrences in the last error counts
}

// Close adds the error that the end of the report cuts off, and marks stubs as complete.
func (f *finder) Close() error {
	err := f.Reader.Close()
	f.t.finish()
	for _, r := range f.runs {
		if to := f.to.Process(r.number); r.stub && to != nil {
			to.Complete = true
		}
	}
	return err
}

func (f *finder) take(rec *Record) error {
	f.answers.time = time.Time{}
	p := f.t.cur
	switch f.t.changeProcess(rec) {
	case begins:
		f.forget()
		f.runOf(f.t.cur)
		return nil
	case resumes:
		f.complete(p)
		f.forget()
		return nil
	case ends:
		f.complete(p)
		f.t.reportUnplaced(p)
		return nil
	}
	if p.learnHeader(rec) {
		f.describe(p)
		f.runOf(p).stub = rec.Name == "args" && !rec.Cut
		return nil
	}
	if rec.Name != "" {
		f.runOf(p).stub = false
	}
	f.t.learn(rec)
	f.t.checkVersion(rec)
	p.learnSummary(rec)
	switch rec.Name {
	case "announcethread":
		f.keepThread(rec)
	case "error":
		f.addError(rec, f.finding(rec))
	case "fatal_signal":
		f.addError(rec, f.signal(rec))
	case "errorcounts":
		f.count(rec)
	case "suppcounts":
		for i := range rec.Items {
			if it := &rec.Items[i]; it.Leaf && it.Name == "name" {
				f.to.UseSuppression(clean(it.Text))
			}
		}
	case "status":
		f.describe(p)
	}
	return nil
}

// runOf returns the run of a process, and begins it for a new process.
func (f *finder) runOf(p *process) *run {
	r := f.runs[p.number]
	if r == nil {
		if f.runs == nil {
			f.runs, f.byPID = make(map[int]*run), make(map[string]int)
		}
		r = &run{number: f.to.Begin(findings.Process{Input: f.input, Source: findings.FromValgrind})}
		f.runs[p.number] = r
	}
	return r
}

// describe copies the tool, PID and command of a process into the findings. If an earlier report
// has this PID, describe marks that report as complete: it has no end, because the process has
// executed another program.
func (f *finder) describe(p *process) {
	r := f.runOf(p)
	to := f.to.Process(r.number)
	if to == nil {
		return
	}
	to.Tool, to.PID = p.tool, p.pid
	r.finished = r.finished || p.summary.finished
	if p.exe != "" {
		f.to.SetCommand(r.number, append([]string{p.exe}, p.args...))
	}
	if p.pid == "" || f.isLast(p.pid, r.number) {
		return
	}
	if before, known := f.byPID[p.pid]; known && before < r.number {
		if to := f.to.Process(before); to != nil {
			to.Complete = true
		}
	}
	if len(f.byPID) >= maxProcesses { // no loss: after an exec, the next report follows soon
		clear(f.byPID)
	}
	f.byPID[p.pid] = r.number
}

func (f *finder) isLast(pid string, number int) bool {
	last, known := f.byPID[pid]
	return known && last == number
}

// forget drops the state of processes whose documents have ended.
func (f *finder) forget() {
	f.shared = sharing{}
	for number := range f.runs {
		if number != f.t.cur.number && !slices.ContainsFunc(f.t.open, func(p *process) bool { return p.number == number }) {
			delete(f.runs, number)
		}
	}
}

// complete marks the report of a process as complete if its state is FINISHED. It must be called
// only at the end of the document: leaks follow the state, so the state alone does not show that
// the report is complete.
func (f *finder) complete(p *process) {
	r := f.runOf(p)
	if to := f.to.Process(r.number); to != nil && r.finished {
		to.Complete = true
	}
}

func (f *finder) addError(rec *Record, x *findings.Finding) {
	if rec.Continued { // the first part became the finding
		return
	}
	f.keepLinkage(rec)
	r := f.runOf(f.t.cur)
	x.Source, x.Tool = findings.FromValgrind, f.t.cur.tool
	x.Identify(f.own)
	x = f.to.Add(r.number, x, 1)
	if number := rec.Get("unique"); x != nil && len(number) > 0 && len(number) <= maxName && len(r.errors) < maxErrors {
		if r.errors == nil {
			r.errors = make(map[string]counted)
		}
		r.errors[string(number)] = counted{x, 1}
	}
}

// count updates the occurrences of errors from a record of error counts. Each record counts all
// occurrences so far.
func (f *finder) count(rec *Record) {
	r := f.runOf(f.t.cur)
	var n uint64
	for i := range rec.Items {
		it := &rec.Items[i]
		switch {
		case it.Name == "count":
			n, _ = parseNumber(it.Text)
		case it.Name == "unique":
			if e, known := r.errors[string(it.Text)]; known && n > e.count {
				f.to.Occurred(e.finding, r.number, n-e.count)
				r.errors[string(it.Text)] = counted{e.finding, n}
			}
			n = 0
		}
	}
}

const maxDetails = 16 // lines of an error's text besides its message

// finding converts an error record to a Finding with all its stacks, each cut to maxThreadFrames
// frames.
func (f *finder) finding(rec *Record) *findings.Finding {
	x := &findings.Finding{Kind: f.text(rec.Get("kind"))}
	if what, ok := whatOf(rec); ok {
		x.Message = clean(what)
	}
	stacks := 0
	for i := range rec.Items {
		if it := &rec.Items[i]; it.Name == "stack" && !it.Leaf {
			stacks++
		}
	}
	if stacks > 0 {
		x.Traces = make([]findings.Trace, 0, stacks)
	}
	said := "" // the last line of text, possibly about the next stack
	detail := func() {
		if said != "" && len(x.Detail) < maxDetails {
			x.Detail = append(x.Detail, said)
		}
		said = ""
	}
	for i := range rec.Items {
		it := &rec.Items[i]
		switch {
		case it.Name == "stack" && !it.Leaf:
			t := findings.Trace{Role: roleOf(said), Message: said, Frames: f.frames(rec.Frames[it.First:min(it.Last, it.First+maxThreadFrames)])}
			said = ""
			if len(x.Traces) == 0 {
				t.Role = findings.RoleError
			}
			x.Traces = append(x.Traces, t)
		case !it.Leaf:
		case it.Name == "leakedbytes":
			x.Bytes, _ = parseNumber(it.Text)
		case it.Name == "leakedblocks":
			x.Blocks, _ = parseNumber(it.Text)
		case it.Name == "auxwhat", len(x.Traces) > 0 && (it.Name == "what" || it.Name == "text"):
			detail()
			if said = ""; isClean(it.Text) {
				said = f.text(it.Text)
			} else {
				said = clean(it.Text)
			}
			if m := memoryOf(said); m != findings.MemoryUnknown {
				x.Memory = m
			}
		}
	}
	detail()
	f.addThreads(x, rec)
	return x
}

// keepLinkage takes linkage names from the suppression of an error, since frames have only
// demangled names. The suppression has a line for each frame of the first stack.
func (f *finder) keepLinkage(rec *Record) {
	var frames []Frame
	for i := range rec.Items {
		it := &rec.Items[i]
		if it.Name == "stack" && !it.Leaf && frames == nil {
			frames = rec.Frames[it.First:it.Last]
		}
		if it.Name != "rawtext" || !it.Leaf {
			continue
		}
		for line := range bytes.Lines(it.Text) {
			line = bytes.TrimSpace(line)
			name, isName := bytes.CutPrefix(line, []byte("fun:"))
			switch {
			case !isName && !bytes.HasPrefix(line, []byte("obj:")):
				continue
			case len(frames) == 0 || isName != (frames[0].Fn != nil):
				return
			case isMangled(name) && !isMangled(frames[0].Fn):
				f.to.KnowLinkage(string(frames[0].Fn), string(name))
			}
			frames = frames[1:]
		}
		return
	}
}

// maxThreads bounds the thread-creation stacks kept for a process. maxThreadFrames bounds the
// frames of each stack in a finding.
const (
	maxThreads      = 256
	maxThreadFrames = 64
)

// keepThread keeps the stack that created a thread. Helgrind reports it before the first error
// that names the thread.
func (f *finder) keepThread(rec *Record) {
	number := string(rec.Get("hthreadid"))
	r := f.runOf(f.t.cur)
	if rec.Continued || number == "" || len(number) > maxName || len(r.threads) >= maxThreads {
		return
	}
	for i := range rec.Items {
		if it := &rec.Items[i]; it.Name == "stack" && !it.Leaf {
			if r.threads == nil {
				r.threads = make(map[string]findings.Trace)
			}
			r.threads[number] = findings.Trace{Role: findings.RoleOther, Message: "Thread #" + clean([]byte(number)) + " was created", Frames: f.frames(rec.Frames[it.First:min(it.Last, it.First+maxThreadFrames)])}
			return
		}
	}
}

// addThreads adds the creation stacks of the threads that an error names: each once, at most
// maxDetails.
func (f *finder) addThreads(x *findings.Finding, rec *Record) {
	threads := f.runOf(f.t.cur).threads
	if len(threads) == 0 {
		return
	}
	var added []string
	for i := range rec.Items {
		it := &rec.Items[i]
		if it.Name != "hthreadid" || slices.Contains(added, string(it.Text)) || len(added) == maxDetails {
			continue
		}
		if t, ok := threads[string(it.Text)]; ok {
			x.Traces = append(x.Traces, t)
			added = append(added, string(it.Text))
		}
	}
}

// signal returns the signal that ended a process as a finding.
func (f *finder) signal(rec *Record) *findings.Finding {
	x := f.finding(rec)
	x.Kind = "FatalSignal"
	x.Message = "Process terminating with default action of signal " + clean(rec.Get("signo"))
	if name := rec.Get("signame"); len(name) > 0 {
		x.Message += " (" + clean(name) + ")"
	}
	if event := rec.Get("event"); len(event) > 0 {
		x.Detail = append(x.Detail, clean(event))
	}
	return x
}

// clean returns text with a single space between words, and none at its ends.
func clean(text []byte) string {
	if isClean(text) {
		return string(text)
	}
	return strings.Join(strings.Fields(string(bytes.ToValidUTF8(text, []byte("\uFFFD")))), " ")
}

// isClean reports whether text is printable ASCII with single spaces between words only.
func isClean(text []byte) bool {
	before := byte(' ')
	for _, c := range text {
		if c < ' ' || c > '~' || c == ' ' && before == ' ' {
			return false
		}
		before = c
	}
	return before != ' ' || len(text) == 0
}

// maxTexts bounds the number of texts kept for sharing. maxText bounds the bytes of such a text.
const (
	maxTexts = 256
	maxText  = 256
)

// text returns b as a string. Findings share short texts, which are often repeated.
func (f *finder) text(b []byte) string {
	known, ok := f.texts[string(b)]
	switch {
	case ok:
		return known
	case len(b) > maxText:
		return string(b)
	case len(f.texts) >= maxTexts || f.texts == nil:
		f.texts = make(map[string]string)
	}
	s := string(b)
	f.texts[s] = s
	return s
}

// roleOf returns the role of a stack, such as an allocation, from the text before it.
func roleOf(said string) findings.Role {
	switch {
	case strings.HasSuffix(said, "free'd"):
		return findings.RoleFreed
	case strings.Contains(said, "alloc'd"), strings.HasPrefix(said, "Uninitialised value was created by a"):
		return findings.RoleAllocated
	}
	return findings.RoleOther
}

// memoryOf returns the kind of memory that the text about an address describes.
func memoryOf(said string) findings.Memory {
	switch {
	case !strings.HasPrefix(said, "Address "):
	case strings.HasSuffix(said, "free'd"):
		return findings.MemoryFreed
	case strings.HasSuffix(said, "alloc'd"):
		return findings.MemoryAlive
	case strings.Contains(said, "is not stack'd, malloc'd"), strings.Contains(said, "unallocated block"):
		return findings.MemoryOutside
	}
	return findings.MemoryUnknown
}
