package rtrace

import (
	"errors"

	"github.com/symfilter/symfilter/report"
)

// Output says in which form a report is printed.
type Output uint8

// The forms.
const (
	Text Output = iota // the report's own
	JSON               // an object a record: report.schema.json
)

// Options are those of every reader of reports, the form of the output, and what is left of the
// report. The zero value leaves all as it is. Without Elements, and with a Symbolizer, a frame of
// which the report says more than the symbolizer does is text.
type Options struct {
	report.Options

	// Output is for NewReport.
	Output Output

	// Processing says what is left out, and in which order the rest comes.
	Processing Processing
}

var (
	errNoFile    = errors.New("what is mapped there is no file")
	errOtherFile = errors.New("the file is not the one that ran: another part of it was mapped as code")
)

// unresolved returns a frame at s that got no name.
func (s site) unresolved(err error) report.Unresolved {
	switch {
	case s.at == nil:
		return report.Unresolved{Frames: 1}
	case s.at.file == nil:
		return report.Unresolved{Path: s.at.path, Frames: 1, Err: errNoFile}
	case !s.at.placed:
		err = errOtherFile
	}
	return s.at.file.Unresolved(1, err)
}

// teller passes diagnostics on, each once.
type teller struct {
	to   func(string)
	told map[string]struct{}
}

func (t *teller) tell(s string) {
	if _, ok := t.told[s]; ok || t.to == nil || len(t.told) >= maxTold {
		return
	}
	if t.told == nil {
		t.told = make(map[string]struct{})
	}
	t.told[s] = struct{}{}
	t.to(s)
}
