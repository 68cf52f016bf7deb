package callgrind

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// An Input is one of several inputs whose profiles are summed: the files of a run.
type Input struct {
	// Label is the input's name.
	Label string

	// Diagnose and Foreign replace these fields of the report's Options until the input ends.
	Diagnose func(string)
	Foreign  io.WriteCloser
}

type inputs struct {
	labels   []string // labels of the nonempty inputs, or of all if all are empty
	empty    []string // labels of the empty inputs
	last     string   // label of the current input
	diagnose func(string)
	open     bool     // the current input has not ended
	lines    int      // lines of all ended inputs
	costs    bool     // the current input has costs
	cut      []string // labels of inputs that end in the middle, or have neither costs nor totals
}

// Begin ends the current input and begins another: a file of the same run, whose costs are
// added. Each input numbers its names separately. Without Begin, all data written is one input.
func (r *Report) Begin(in Input) error {
	err := r.End()
	r.in.last, r.in.open, r.in.costs = in.Label, true, false
	r.o.Diagnose, r.o.Foreign, r.reader.foreign = in.Diagnose, in.Foreign, nil
	if r.o.Output == Table && in.Foreign != nil {
		r.reader.foreign = r.passForeign
	}
	return err
}

// End ends the current input, if any. Close also does this.
func (r *Report) End() error {
	if !r.in.open {
		return nil
	}
	r.in.open = false
	err := r.reader.Close()
	err = cmp.Or(err, r.endForeign())
	r.endPart()
	if n := r.reader.number; n == 0 {
		r.in.empty = append(r.in.empty, r.in.last)
	} else {
		r.in.labels = append(r.in.labels, r.in.last)
		r.in.lines += n
		if len(r.reader.columns) == 0 && !r.in.costs {
			r.o.report().Report(errNoProfile)
		}
	}
	if r.reader.truncated || r.reader.number > 0 && !r.in.costs && !r.reader.summed {
		r.in.cut = append(r.in.cut, r.in.last)
	}
	r.reader.restart()
	r.openLine = false
	r.o.Diagnose = r.in.diagnose
	return err
}

// errNoProfile reports an input without costs.
const errNoProfile = "not a profile: the input has neither an events: line nor costs"

func (r *Report) endReading() error {
	if len(r.in.labels)+len(r.in.empty) == 0 && !r.in.open { // Begin was not called
		r.in.open, r.in.last = true, r.o.Label
	}
	err := r.End()
	if len(r.in.labels) == 0 {
		r.in.labels = r.in.empty
	}
	if n := len(r.m.head.commands); n > 1 && len(r.in.labels) > 1 {
		r.o.report().Report(fmt.Sprintf("the profiles of %d different commands are added up; for a table of each FILE, run symfilter without the word callgrind", n))
	}
	return err
}

// label returns the name of the profile for a heading.
func (r *Report) label() string {
	switch n := len(r.in.labels); n {
	case 0:
		return r.o.Label
	case 1:
		return r.in.labels[0]
	default:
		return r.in.labels[0] + " and " + strconv.Itoa(n-1) + " more"
	}
}

// describe returns the heading of a profile: its name and the program that wrote it, with the
// number of parts or threads if there are several.
func (r *Report) describe() string {
	h := &r.m.head
	from := slices.DeleteFunc([]string{r.label(), h.creator}, func(s string) bool { return s == "" })
	if h.parts > 1 {
		from = append(from, strconv.Itoa(h.parts)+" parts")
	}
	if n := len(h.threads); n > 1 {
		from = append(from, strconv.Itoa(n)+" threads")
	}
	return strings.Join(from, ", ")
}

// restart prepares r for another input: line numbers begin at 1, and the tables of names are empty.
// Records still have the same IDs for names, and the same columns for events.
func (r *recordReader) restart() {
	r.newPart()
	r.documents, r.number, r.truncated = 0, 0, false
	r.columns = nil
	clear(r.complaints)
}
