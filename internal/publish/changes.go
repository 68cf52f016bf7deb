package publish

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path"
	"strconv"
	"time"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/gate"
)

// State returns whether a finding is new or unchanged, or "" without a comparison.
func (r *Result) State(x *findings.Finding) gate.State { return r.Changes.State(x) }

// File returns the source file of a finding as the printers name it, or "" if the finding has no
// line.
func (r *Result) File(x *findings.Finding) string {
	if f := x.Place(); f != nil && f.HasLine {
		file, _ := r.path(f.File)
		return file
	}
	return ""
}

// Place returns the source file and line of a finding, such as lib/copy.cc:12, or "" if the finding
// has no line.
func (r *Result) Place(x *findings.Finding) string {
	if file := r.File(x); file != "" {
		return file + ":" + strconv.FormatUint(uint64(x.Place().Line), 10)
	}
	return ""
}

// Changes prints the changes of the run as text: their numbers, the first new finding of each
// fingerprint in full, and a line for each finding that is gone. It fails only if w does.
func Changes(w io.Writer, r *Result) error {
	b := bufio.NewWriter(w)
	c := r.Changes
	fmt.Fprintf(b, "new %d, gone %d, same %d\n", len(c.New), len(c.Gone), c.Same)
	t := &changesText{b, r}
	for i := range c.New {
		t.change(&c.New[i])
	}
	if len(c.Gone) > 0 {
		b.WriteByte('\n')
	}
	for i := range c.Gone {
		t.gone(&c.Gone[i])
	}
	return b.Flush()
}

type changesText struct {
	*bufio.Writer
	r *Result
}

const (
	shownProcesses = 8 // processes listed for a finding
	shownPlaces    = 4 // lines of source listed for further findings with the same fingerprint
)

// text prints text of unknown origin, escaped.
func (t *changesText) text(s string) { t.Write(escape.AppendText(nil, s, "")) }

// change prints the new findings with one fingerprint: the first finding in full, and only the file
// and line of the others.
func (t *changesText) change(c *gate.Change) {
	x := c.Findings[0]
	t.WriteByte('\n')
	t.text(cmp.Or(x.Message, x.Kind) + " [" + x.Tool + "/" + x.Kind + "]")
	t.WriteByte('\n')
	for i := range x.Traces {
		if m := x.Traces[i].Message; m != "" {
			t.text(" " + m)
			t.WriteByte('\n')
		}
		for n := range x.Traces[i].Frames {
			t.frame(n, x.Traces[i].Frames[n])
		}
	}
	for _, line := range x.Detail {
		t.text(" " + line)
		t.WriteByte('\n')
	}
	if !c.Expired.IsZero() {
		fmt.Fprintf(t, " The baseline accepted this finding until %s.\n", c.Expired.Format(time.DateOnly))
	}
	if c.Unnamed {
		t.WriteString(" This finding counts as new, since no frame of the program has a name.\n")
	}
	t.others(c.Findings[1:])
	t.seen(c.Findings)
	fmt.Fprintf(t, " fingerprint %s\n", x.Fingerprint)
}

func (t *changesText) frame(n int, f *findings.TraceFrame) {
	s := "    #" + strconv.Itoa(n)
	if f.Named() {
		s += " " + functionOf(f)
	} else if f.Address != 0 {
		s += " 0x" + strconv.FormatUint(f.Address, 16)
	}
	if f.HasLine {
		file, _ := t.r.path(f.File)
		s += " " + file + ":" + strconv.FormatUint(uint64(f.Line), 10)
		if f.Column > 0 {
			s += ":" + strconv.FormatUint(uint64(f.Column), 10)
		}
	}
	if f.Object != "" {
		s += " (" + path.Base(f.Object)
		if f.Offset != 0 {
			s += "+0x" + strconv.FormatUint(f.Offset, 16)
		}
		s += ")"
	}
	if id := f.ID.String(); !f.Named() && id != "" {
		s += " (BuildId: " + id + ")"
	}
	t.text(s)
	t.WriteByte('\n')
}

// others prints the files and lines of further findings with the same fingerprint, such as the
// copies of an unrolled loop.
func (t *changesText) others(all []*findings.Finding) {
	if len(all) == 0 {
		return
	}
	s := " " + strconv.Itoa(len(all)) + " more with this fingerprint"
	for i, x := range all[:min(len(all), shownPlaces)] {
		s += map[bool]string{true: ": ", false: ", "}[i == 0]
		if p := t.r.Place(x); p != "" {
			s += p
		} else {
			s += "no line"
		}
	}
	if len(all) > shownPlaces {
		s += ", ..."
	}
	t.text(s)
	t.WriteByte('\n')
}

// seen prints how often findings occurred, and in which processes.
func (t *changesText) seen(all []*findings.Finding) {
	var total uint64
	var order []int
	counts := make(map[int]uint64)
	for _, x := range all {
		for _, o := range x.Seen {
			if counts[o.Process] == 0 {
				order = append(order, o.Process)
			}
			counts[o.Process] += o.Count
			total += o.Count
		}
	}
	s := " " + times(total) + " in "
	if len(order) != 1 {
		s += strconv.Itoa(len(order)) + " processes: "
	}
	for i, n := range order[:min(len(order), shownProcesses)] {
		if i > 0 {
			s += ", "
		}
		s += t.process(n)
		if len(order) > 1 && counts[n] > 1 {
			s += " " + times(counts[n])
		}
	}
	if n := len(order) - shownProcesses; n > 0 {
		s += " and " + strconv.Itoa(n) + " more"
	}
	t.text(s)
	t.WriteByte('\n')
}

// process returns the program and the PID of a process, or its input.
func (t *changesText) process(number int) string {
	p := t.r.Process(number)
	switch {
	case p == nil:
		return "a process"
	case len(p.Command) == 0 && p.PID == "":
		return p.Input
	case len(p.Command) == 0:
		return "PID " + p.PID
	case p.PID == "":
		return p.Command[0]
	}
	return p.Command[0] + " (PID " + p.PID + ")"
}

func (t *changesText) gone(e *gate.Entry) {
	s := "gone: " + e.Kind
	if e.Function != "" {
		s += " in " + e.Function
	}
	if e.File != "" {
		s += ", " + e.File
	}
	if e.Program != "" {
		s += " (" + e.Program + ")"
	}
	t.text(s)
	t.WriteByte('\n')
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return strconv.FormatUint(n, 10) + " times"
}
