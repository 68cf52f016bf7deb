package page

import (
	"bytes"
	"strings"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/backtrace"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/html"
	"github.com/symfilter/symfilter/internal/layout"
)

// detailOf returns the details of the i-th frame of a resolved address, or of its variable, without
// source text. If the address has no name, the details have the reason.
func detailOf(r *filter.Resolved, i int) html.Detail {
	d := html.Detail{Module: r.Module, Offset: r.Offset}
	if !r.ID.IsZero() {
		d.BuildID = r.ID.String()
	}
	switch {
	case r.Variable != nil:
		d.Function = escape.Clean(r.Variable.Name + r.Variable.Member)
	case i < len(r.Frames):
		f := &r.Frames[i]
		d.Function = escape.Clean(f.Func)
		if f.File != "" {
			d.File, d.Line, d.URL = escape.Clean(f.File), f.Line, r.Link(i)
		}
	case r.Err != nil:
		d.Reason = r.Err.Error()
	default:
		d.Reason = "no symbol covers the address"
	}
	return d
}

// addSource adds the source lines around the i-th frame of a resolved address to d.
func addSource(d *html.Detail, r *filter.Resolved, i int) {
	s := r.Snippet(i)
	if len(s.Lines) == 0 {
		return
	}
	f := &r.Frames[i]
	for k, line := range s.Lines {
		number := s.First + uint32(k)
		marked := number == f.Line
		column := uint32(0)
		if marked {
			column = f.Column
		}
		text, caret := layout.AppendSourceLine(nil, number, line, column)
		d.Source = append(d.Source, html.SourceLine{Text: text, Marked: marked})
		if caret >= 0 {
			d.Source = append(d.Source, html.SourceLine{Text: layout.AppendCaret(nil, number, caret)})
		}
	}
	if !s.Verified {
		d.Note = "the source is not verified"
	}
}

// objectOf returns the base name of the module of a resolved address.
func objectOf(r *filter.Resolved) string {
	return escape.Clean(r.Module[strings.LastIndexByte(r.Module, '/')+1:])
}

// timeOf returns the first time in a line of the log, such as 2026-11-22T00:06:44.998, or nil. The
// result may alias line.
func timeOf(line []byte) []byte {
	line = dialect.WithoutColors(line[:min(len(line), backtrace.MaxMessage)])
	isDigit := func(i int) bool { return i < len(line) && '0' <= line[i] && line[i] <= '9' }
	for i := range line {
		if line[i] != ':' || i < 2 || !isDigit(i-2) || !isDigit(i-1) || !isDigit(i+1) || !isDigit(i+2) || i+3 >= len(line) || line[i+3] != ':' || !isDigit(i+4) {
			continue
		}
		from, to := i-2, i+4
		for from > 0 && bytes.IndexByte([]byte("0123456789-/T"), line[from-1]) >= 0 {
			from--
		}
		if from > 1 && line[from-1] == ' ' && isDigit(from-2) {
			from--
			for from > 0 && bytes.IndexByte([]byte("0123456789-/"), line[from-1]) >= 0 {
				from--
			}
		}
		for to < len(line) && bytes.IndexByte([]byte("0123456789.,+-:Z"), line[to]) >= 0 {
			to++
		}
		return bytes.TrimRight(line[from:to], ".,:-+")
	}
	return nil
}
