package collector

import (
	"sort"

	"github.com/symfilter/symfilter/filter"
)

// traces filters several texts of a stream as the lines of one log, and replaces each text with its
// part of the output. It is a [filter.Printer].
type traces struct {
	w     *worker
	lines *filter.Lines
	size  int // bytes of the run so far

	log      []byte
	texts    []int32  // indexes of the texts of the run
	ends     []int64  // number of the last line of each text
	printed  []output // lines of the output
	bytes    int      // bytes of the output
	complete []bool   // the text ends with its own line end
}

// An output is a printed line: its number in the log, and the offset of its end in the output.
type output struct {
	number int64
	end    int
}

func newTraces(w *worker) *traces {
	t := &traces{w: w}
	o := w.options()
	o.Printer = t
	o.Resolved = w.answers.add // finds the text of an unresolved address
	t.lines = filter.NewLines(o)
	return t
}

// AppendElement appends nothing: only the text is needed.
func (t *traces) AppendElement(dst []byte, _ *filter.Element) []byte { return dst }

// AppendLine appends the text of a line, and records where the text ends.
func (t *traces) AppendLine(dst []byte, l *filter.Line) []byte {
	t.bytes += len(l.Text) + len(l.EOL)
	t.printed = append(t.printed, output{l.Number, t.bytes})
	return append(append(dst, l.Text...), l.EOL...)
}

func (t *traces) filter(r *run, first, last int32) {
	w := t.w
	t.log, t.texts, t.ends, t.complete, t.printed, t.bytes = t.log[:0], t.texts[:0], t.ends[:0], t.complete[:0], t.printed[:0], 0
	lines := int64(0)
	for i := first; ; i = w.texts[i].next {
		s := w.texts[i].value.Str()
		t.log = append(t.log, s...)
		for j := range len(s) {
			if s[j] == '\n' {
				lines++
			}
		}
		complete := len(s) > 0 && s[len(s)-1] == '\n'
		if !complete {
			t.log = append(t.log, '\n')
			lines++
		}
		t.texts, t.ends, t.complete = append(t.texts, i), append(t.ends, lines), append(t.complete, complete)
		if i == last {
			break
		}
	}
	w.answers.enterRun(t)
	out, got := t.lines.Append(w.out[:0], &r.s.context, t.log)
	w.out = out
	w.answers.leave()
	w.counts.filtered += int64(len(t.texts))
	r.changed = r.changed || got.Changed
	r.dict = got.InDict
	r.unresolved = r.unresolved || got.Unresolved > 0
	begin, line := 0, 0
	for i, at := range t.texts {
		to := begin
		for ; line < len(t.printed) && t.printed[line].number <= t.ends[i]; line++ {
			to = t.printed[line].end
		}
		piece := out[begin:to]
		begin = to
		if !t.complete[i] && len(piece) > 0 && piece[len(piece)-1] == '\n' {
			piece = piece[:len(piece)-1]
		}
		if v := w.texts[at].value; len(piece) > 0 && string(piece) != v.Str() {
			v.SetStr(string(piece))
		}
	}
	if cap(t.log) > maxRun {
		t.log = nil
	}
}

// textOf returns the text with the given line.
func (t *traces) textOf(line int64) *text {
	i := sort.Search(len(t.ends), func(i int) bool { return t.ends[i] >= line })
	return &t.w.texts[t.texts[min(i, len(t.texts)-1)]]
}
