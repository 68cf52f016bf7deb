package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/checkpoint"
)

// A savedPast is an earlier line that may have a trace's header. Lines that cannot have a header
// are not saved: Bytes and Lines are the size and the number of such lines since the previous
// savedPast. The last savedPast may have no Text.
type savedPast struct {
	Bytes int             `json:"bytes,omitempty"`
	Lines int             `json:"lines,omitempty"`
	Text  checkpoint.Text `json:"text,omitempty"`
}

// pastSaved returns the past of t up to the held lines.
func pastSaved(t *tracer) (all []savedPast) {
	past := t.past.tail[:len(t.past.tail)-len(lastLines(t.past.tail, int64(len(t.buffered)-t.printed)))]
	var next savedPast
	for line := range bytes.Lines(t.past.texts(past[max(0, len(past)-maxPast):])) {
		if t.reader.MayHaveHeader(line) {
			next.Text = bytes.Clone(line)
			all = append(all, next)
			next = savedPast{}
			continue
		}
		next.Bytes += len(line)
		next.Lines++
	}
	if next.Lines > 0 {
		all = append(all, next)
	}
	return all
}

// restore sets p, which must be empty, from the result of pastSaved.
func (p *past) restore(all []savedPast) error {
	for i := range all {
		s := &all[i]
		if s.Lines < 0 || s.Lines > s.Bytes || s.Bytes > maxPast || len(p.tail)+s.Bytes+len(s.Text) > maxPast {
			return checkpoint.Damaged("the saved lines before the held backtrace are not valid")
		}
		p.tail = append(p.tail, bytes.Repeat([]byte{' '}, s.Bytes-s.Lines)...)
		p.tail = append(p.tail, bytes.Repeat(newline, s.Lines)...)
		p.tail = append(p.tail, s.Text...)
	}
	if n := len(p.tail); n > 0 && p.tail[n-1] != '\n' {
		return checkpoint.Damaged("the last saved line before the held backtrace has no line end")
	}
	return nil
}
