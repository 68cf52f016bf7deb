package valgrind

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/escape"
)

// NewText returns a writer that converts a report to Valgrind's plain text, such as "==PID==
// Invalid read of size 4". Frames look as if Valgrind had found the debug information. Facts
// that the XML lacks are omitted, such as the sizes in HEAP SUMMARY before protocol 6. If the
// logged command line has --quiet, the heading and the summaries are omitted, as in Valgrind.
// Close writes the rest, and does not close w. All errors come from w. The writer is for one
// goroutine.
func NewText(w io.Writer, o Options) io.WriteCloser {
	c := &classic{w: w, o: &o, t: newTracker(&o)}
	c.names = newNamer(&o, c.t)
	c.Reader = NewReader(c.take)
	return c
}

// A classic writes records as Valgrind's text.
type classic struct {
	*Reader
	w     io.Writer
	o     *Options
	t     *tracker
	names *namer
	err   error

	out    []byte
	prefix []byte // prefix of the current process: "==7== "
	in     *spoken
	repeat []byte // the last suppression, to omit its copy: Valgrind 3.19 writes two
	frames []textFrame
}

// A spoken is the state of the output for one process.
type spoken struct {
	of       *process
	begun    bool   // the heading was written
	preamble []byte // lines of the preamble, with their line ends
	thread   string // number of the thread that the output named last
}

// A textFrame is a line of a stack.
type textFrame struct {
	ip             uint64
	raw            []byte // printed instead of ip if <ip> is not a number
	name, position string // empty if unknown; position is FILE:LINE
	object         []byte
}

// Write writes the records that p completes.
func (c *classic) Write(p []byte) (int, error) {
	n, err := c.Reader.Write(p)
	c.send()
	return n, cmp.Or(err, c.err)
}

// Close writes the record that the end of the report cuts off.
func (c *classic) Close() error {
	err := c.Reader.Close()
	c.t.finish()
	c.send()
	return cmp.Or(err, c.err)
}

func (c *classic) send() {
	if len(c.out) > 0 && c.err == nil {
		_, c.err = c.w.Write(c.out)
	}
	c.out = c.out[:0]
}

func (c *classic) take(rec *Record) error {
	c.names.answers.time = time.Time{}
	p := c.t.cur
	if rec.Name == "/"+document && !p.quiet {
		c.summaries()
	}
	switch c.t.changeProcess(rec) {
	case begins:
		c.in, c.repeat = nil, nil
	case resumes:
		c.in, c.repeat = nil, nil
		c.process().begun = true
	case ends:
		c.t.reportUnplaced(p)
	case same:
		known := p.learnHeader(rec)
		if !known {
			c.t.learn(rec)
		}
		c.t.checkVersion(rec)
		p.learnSummary(rec)
		c.write(rec, known)
	}
	if len(c.out) >= sendSize {
		c.send()
	}
	return c.err
}

func (c *classic) process() *spoken {
	if c.in == nil || c.in.of != c.t.cur {
		c.in = &spoken{of: c.t.cur, thread: "1"}
		c.prefix = nil
	}
	return c.in
}

// head writes the heading of the process, once.
func (c *classic) head() {
	s := c.process()
	if c.prefix == nil {
		pid := s.of.pid
		if n, ok := parseNumber([]byte(pid)); !ok || n > 1<<32 {
			pid = "0"
		}
		c.prefix = []byte("==" + pid + "== ")
	}
	if s.begun || s.of.quiet {
		return
	}
	s.begun = true
	for line := range bytes.Lines(s.preamble) {
		c.line("", bytes.TrimSuffix(line, lineEnd))
	}
	if s.of.ppid != "" {
		c.line("Parent PID: ", []byte(s.of.ppid))
	}
	c.line("", nil)
}

// line writes a line: the prefix, the string before, and text. Control characters in text, except
// TAB, are escaped.
func (c *classic) line(before string, text []byte) {
	c.out = append(append(c.out, c.prefix...), before...)
	c.out = append(appendClean(c.out, text), '\n')
}

func (c *classic) lines(before string, text []byte) {
	text = bytes.TrimRight(text, " \t\r\n")
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, lineEnd)
		c.line(before, line)
		text = rest
	}
}

// write writes a record of the current process. isHeader means that the record only describes the
// process: such a record is not written.
func (c *classic) write(rec *Record, isHeader bool) {
	s := c.process()
	switch {
	case rec.Name == "preamble":
		for i := range rec.Items {
			if it := &rec.Items[i]; it.Leaf && it.Name == "line" && len(s.preamble) < maxHeader {
				s.preamble = append(append(s.preamble, it.Text...), '\n')
			}
		}
		return
	case isHeader, rec.Name == "usercomment", rec.Name == "logfilequalifier":
		return
	}
	c.head()
	switch rec.Name {
	case "error":
		c.error(rec)
	case "announcethread":
		if !rec.Continued {
			c.line("---Thread-Announcement------------------------------------------", nil)
			c.line("", nil)
			role := " was created"
			if slices.ContainsFunc(rec.Items, func(it Item) bool { return it.Name == "isrootthread" }) {
				role = " is the program's root thread"
			}
			c.line("Thread #", slices.Concat(bytes.TrimSpace(rec.Get("hthreadid")), []byte(role)))
		}
		c.items(rec)
		c.line("", nil)
	case "fatal_signal":
		c.signal(rec)
	case "clientmsg":
		c.message(rec)
	case "trace":
		c.items(rec)
	case "suppression":
		c.suppression(rec.Get("rawtext"))
	case "":
		c.lines("", textOf(rec))
	case "heap_summary", "leak_summary", "all_heap_blocks_freed":
		if !s.of.quiet {
			c.memory(rec)
		}
	}
}

func (c *classic) error(rec *Record) {
	s := c.process()
	helgrind := s.of.tool == "helgrind"
	switch tid := string(rec.Get("tid")); {
	case rec.Continued:
	case helgrind:
		c.line("----------------------------------------------------------------", nil)
		c.line("", nil)
	case tid != "" && tid != s.thread:
		s.thread = tid
		name := tid
		if n := rec.Get("threadname"); len(n) > 0 {
			name += " " + string(n)
		}
		c.line("Thread ", []byte(name+":"))
	}
	c.items(rec)
	if !rec.Cut || len(rec.open) == 0 {
		c.line("", nil)
	}
	for i := range rec.Items {
		if it := &rec.Items[i]; it.Name == "rawtext" && it.Leaf {
			c.suppression(it.Text)
		}
	}
}

func (c *classic) items(rec *Record) {
	helgrind := c.t.cur.tool == "helgrind"
	suppression := -1 // depth of the suppression to skip; -1 if none
	for i := range rec.Items {
		it := &rec.Items[i]
		if suppression >= 0 && it.Depth > suppression {
			continue
		}
		suppression = -1
		switch {
		case it.Name == "suppression":
			suppression = it.Depth
		case it.Name == "stack" && !it.Leaf:
			c.stack(rec.Frames[it.First:it.Last])
		case it.Name == "xauxwhat" && !it.Leaf:
			c.aux(childText(rec, i, "text"), helgrind)
		case it.Name == "auxwhat":
			text := it.Text
			if i+1 < len(rec.Items) && rec.Items[i+1].Name == "allocation_context" {
				text = append(bytes.Clone(text), " Allocation context:"...)
			}
			c.aux(text, helgrind)
		case it.Name == "first_observed_at" && !it.Leaf:
			what, address := childText(rec, i, "what"), childText(rec, i, "address")
			c.line("", slices.Concat(what, []byte(" "), address, []byte(" was first observed at:")))
		case it.Name == "what" && it.Depth > 0:
			if rec.Items[i-1].Name != "first_observed_at" {
				c.aux(it.Text, helgrind)
			}
		case it.Name == "what", it.Name == "text" && it.Leaf && (it.Depth == 0 || i > 0 && rec.Items[i-1].Name == "xwhat"):
			c.lines("", it.Text)
		case it.Name == "other_segment_start":
			c.segment(rec, i, "Other segment start")
		case it.Name == "other_segment_end":
			c.segment(rec, i, "Other segment end")
		}
	}
}

// segment writes a text of DRD about a segment of a thread. The heading has no thread number, since
// the XML lacks that number.
func (c *classic) segment(rec *Record, i int, heading string) {
	c.line(heading, nil)
	if i+1 == len(rec.Items) || rec.Items[i+1].Depth <= rec.Items[i].Depth {
		c.line("   (thread finished, call stack no longer available)", nil)
	}
}

// aux writes a text about the next stack. Helgrind prints a blank line before some of these
// texts, and indents only some.
func (c *classic) aux(text []byte, helgrind bool) {
	before := " "
	switch has := func(s string) bool { return bytes.HasPrefix(text, []byte(s)) }; {
	case has("Allocation context: "), bytes.HasSuffix(text, []byte("Allocation context:")):
		before = ""
	case helgrind && (has("This conflicts with") || has("Required order was established")):
		c.line("", nil)
		before = ""
	case helgrind && (has("followed by a later acquisition") || has("Lock at ")):
		c.line("", nil)
	}
	c.lines(before, c.names.describe(text))
}

// suppression writes a suppression without a prefix. It omits one copy of the last suppression:
// see classic.repeat.
func (c *classic) suppression(raw []byte) {
	if raw == nil || bytes.Equal(raw, c.repeat) {
		c.repeat = nil
		return
	}
	c.repeat = append(c.repeat[:0], raw...)
	c.out = append(escape.AppendText(c.out, raw, "\t\n"), '\n')
}

func (c *classic) signal(rec *Record) {
	if !rec.Continued {
		c.line("", nil)
		c.line("Process terminating with default action of signal ", slices.Concat(rec.Get("signo"), []byte(" ("), rec.Get("signame"), []byte(")")))
		if event := rec.Get("event"); event != nil {
			if addr := rec.Get("siaddr"); addr != nil {
				event = slices.Concat(event, []byte(" at address "), addr)
			}
			c.line(" ", event)
		}
	}
	c.items(rec)
}

// message writes a message that the program sent to Valgrind, with stars around the PID.
func (c *classic) message(rec *Record) {
	stars := bytes.ReplaceAll(c.prefix, []byte("="), []byte("*"))
	for i := range rec.Items {
		it := &rec.Items[i]
		switch {
		case it.Name == "text" && it.Leaf:
			for line := range bytes.Lines(bytes.TrimRight(it.Text, " \t\r\n")) {
				c.out = append(appendClean(append(c.out, stars...), bytes.TrimRight(line, "\r\n")), '\n')
			}
		case it.Name == "stack" && !it.Leaf:
			c.stack(rec.Frames[it.First:it.Last])
		}
	}
}

// stack writes the frames of a stack, up to main unless --show-below-main=yes was given.
func (c *classic) stack(frames []Frame) {
	all := c.names.appendFrames(c.frames[:0], frames)
	c.frames = all
	end := len(all)
	if !c.t.cur.belowMain {
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].name == "main" || all[i].name == "(below main)" {
				end = i + 1
			}
			if all[i].name == "main" {
				break
			}
		}
	}
	for i := range all[:end] {
		f := &all[i]
		c.out = append(c.out, c.prefix...)
		if i == 0 {
			c.out = append(c.out, "   at "...)
		} else {
			c.out = append(c.out, "   by "...)
		}
		if f.raw != nil {
			c.out = appendClean(c.out, f.raw)
		} else {
			c.out = appendAddress(c.out, f.ip)
		}
		c.out = append(c.out, ": "...)
		if f.name == "" {
			c.out = append(c.out, "???"...)
		} else {
			c.out = escape.AppendText(c.out, f.name, "")
		}
		switch {
		case f.position != "":
			c.out = append(escape.AppendText(append(c.out, " ("...), f.position, ""), ')')
		case f.object != nil:
			c.out = append(appendClean(append(c.out, " (in "...), f.object), ')')
		}
		c.out = append(c.out, '\n')
	}
}

// memory writes a summary of the heap or of the leaks, from a record of protocol 6.
func (c *classic) memory(rec *Record) {
	number := func(i int, name string) []byte {
		n, _ := parseNumber(childText(rec, i, name))
		return commas(n)
	}
	if rec.Name == "all_heap_blocks_freed" {
		c.line("All heap blocks were freed -- no leaks are possible", nil)
		c.line("", nil)
		return
	}
	if rec.Name == "leak_summary" {
		c.losses()
		return
	}
	c.line("", nil)
	c.line("HEAP SUMMARY:", nil)
	for i := range rec.Items {
		it := &rec.Items[i]
		switch {
		case it.Depth > 0 || it.Leaf:
		case it.Name == "heap_in_use":
			c.line("    in use at exit: ", slices.Concat(number(i, "bytes"), []byte(" bytes in "), number(i, "blocks"), []byte(" blocks")))
		case it.Name == "heap_total":
			c.line("  total heap usage: ", slices.Concat(number(i, "allocs"), []byte(" allocs, "), number(i, "frees"), []byte(" frees, "), number(i, "bytes"), []byte(" bytes allocated")))
		}
	}
	c.line("", nil)
}

func (c *classic) losses() {
	s := &c.t.cur.summary
	c.line("LEAK SUMMARY:", nil)
	for line := range bytes.Lines(s.appendLosses(nil)) {
		c.line("", bytes.TrimSuffix(line, lineEnd))
	}
	c.line("", nil)
}

// summaries writes the error summary of the ending document. It writes the leak summary too,
// unless already written.
func (c *classic) summaries() {
	s := &c.t.cur.summary
	if s.hasLosses() && !s.statedLeaks {
		c.head()
		c.losses()
	}
	if s.counted {
		c.head()
		c.line("", bytes.TrimSuffix(s.appendErrors(nil), lineEnd))
	}
	*s = summary{}
}

// appendFrames appends the frames of a stack, with their names, as lines of text.
func (n *namer) appendFrames(dst []textFrame, frames []Frame) []textFrame {
	for s, added := range n.all(frames) {
		last := &s.frames[len(s.frames)-1]
		for j := range added {
			f := textFrame{ip: last.IP, raw: last.RawIP, object: last.Obj, name: n.function(&added[j])}
			if j == len(added)-1 && last.Fn != nil {
				f.name = string(last.Fn)
			}
			if added[j].File != "" {
				file := n.o.ShownFile(added[j].File)
				f.position = file[strings.LastIndexByte(file, '/')+1:] + ":" + string(appendDecimal(nil, uint64(added[j].Line)))
			}
			dst = append(dst, f)
		}
		if len(added) > 0 {
			continue
		}
		for j := range s.frames {
			from := &s.frames[j]
			f := textFrame{ip: from.IP, raw: from.RawIP, object: from.Obj, name: string(from.Fn)}
			if from.File != nil {
				f.position = string(from.File) + ":" + string(appendDecimal(nil, from.Line))
			}
			dst = append(dst, f)
		}
	}
	return dst
}
