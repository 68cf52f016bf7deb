package gate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/escape"
)

// An Entry is a known error, from a baseline or an earlier run.
type Entry struct {
	Fingerprint string // see [findings.Finding]
	Kind        string
	Function    string // for people, as are File and Program; empty: unknown
	File        string
	Program     string
	Until       time.Time // last valid day; zero: no end
}

// expired reports whether the last day of the entry is before today.
func (e *Entry) expired(today time.Time) bool {
	return !e.Until.IsZero() && today.Format(time.DateOnly) > e.Until.Format(time.DateOnly)
}

// A Baseline is a file of accepted errors, one on each line. Its zero value is empty.
//
// The first line is heading and the sources of the errors. An error's line has fields separated by
// TABs: fingerprint, kind, function, file, program. Further fields may follow: until=2027-03-01 is
// the last day on which the error is accepted. Error lines are sorted. All other lines are
// comments, which move with the next error line.
type Baseline struct {
	sources string
	lines   []baselineLine // lines in the order of the file, without the first line

	// Foreign is the number of the first line that is neither an error, nor empty, nor a comment
	// that begins with #. It is 0 if there is no such line.
	Foreign int
}

// A baselineLine is a line of the file, without its end. The entry of a comment is empty.
type baselineLine struct {
	text string
	Entry
}

const (
	heading = "# symfilter baseline 1: " // with the version of the format

	maxBaseline = 16 << 20 // bytes of a file
	maxLines    = 1 << 18  // lines of a file; each takes about 200 bytes
	maxField    = 512      // bytes of a field that Update writes
)

var errNoBaseline = errors.New("not a baseline: its first line does not begin with \"" + heading + "\"; remove the file, and --baseline-update makes a new one")

// ReadBaseline reads a baseline. It fails for a file of more than 16 MiB or 262,144 lines.
func ReadBaseline(r io.Reader) (*Baseline, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBaseline+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxBaseline:
		return nil, fmt.Errorf("larger than %d MiB", maxBaseline>>20)
	case bytes.Count(data, []byte("\n")) > maxLines:
		return nil, fmt.Errorf("more than %d lines", maxLines)
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	sources, ok := strings.CutPrefix(first, heading)
	if !ok {
		return nil, errNoBaseline
	}
	b := &Baseline{sources: strings.TrimSpace(sources)}
	number := 1
	for text := range strings.Lines(rest) {
		number++
		l := baselineLine{text: strings.TrimRight(text, "\r\n")}
		if err := l.parse(); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if l.Fingerprint == "" && b.Foreign == 0 && l.text != "" && l.text[0] != '#' {
			b.Foreign = number
		}
		b.lines = append(b.lines, l)
	}
	return b, nil
}

// parse sets the entry of a line that begins with a fingerprint. It finds the fingerprint and the
// date even if an editor has turned TABs into blanks.
func (l *baselineLine) parse() error {
	fingerprint, rest := l.text, ""
	if i := strings.IndexAny(l.text, "\t "); i >= 0 {
		fingerprint, rest = l.text[:i], l.text[i+1:]
	}
	if !isFingerprint(fingerprint) {
		return nil
	}
	l.Fingerprint = fingerprint
	for _, to := range []*string{&l.Kind, &l.Function, &l.File, &l.Program} {
		var field string
		field, rest, _ = strings.Cut(rest, "\t")
		if *to, _, _ = strings.Cut(field, untilWord); *to == missingField {
			*to = ""
		}
	}
	_, date, dated := strings.Cut(l.text, untilWord)
	if !dated {
		return nil
	}
	if i := strings.IndexAny(date, "\t "); i >= 0 {
		date = date[:i]
	}
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return fmt.Errorf("%s%s: write a date as in %s2027-03-01", untilWord, escape.AppendText(nil, date, ""), untilWord)
	}
	l.Until = day
	return nil
}

const (
	untilWord    = "until="
	missingField = "-" // for an unknown field
)

// isFingerprint reports whether s has the form of a fingerprint: 32 digits of lower-case hex.
func isFingerprint(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// Entries returns the accepted errors. A merged file may have several entries with one fingerprint.
func (b *Baseline) Entries() (all []Entry) {
	for i := range b.lines {
		if b.lines[i].Fingerprint != "" {
			all = append(all, b.lines[i].Entry)
		}
	}
	return all
}

// Update replaces the accepted errors by the errors in all. An error that b already has keeps its
// line, with its date. Unless keep is set, lines of errors that are not in all are removed.
// Comments are kept. sources names the sources of the errors in all. If sources is empty, b keeps
// its own sources.
func (b *Baseline) Update(all []Entry, sources []string, keep bool) {
	if len(sources) > 0 {
		b.sources = strings.Join(sources, " ")
	}
	is := make(map[string]bool)
	for i := range all {
		is[all[i].Fingerprint] = true
	}
	var blocks []baselineBlock
	var comments []string
	kept := make(map[string]bool) // fingerprints and lines
	for _, l := range b.lines {
		switch {
		case l.Fingerprint == "":
			comments = append(comments, l.text)
		case (keep || is[l.Fingerprint]) && !kept[l.text]:
			kept[l.Fingerprint], kept[l.text] = true, true
			blocks = append(blocks, baselineBlock{comments, l})
			comments = nil
		}
	}
	for _, e := range all {
		if !kept[e.Fingerprint] {
			kept[e.Fingerprint] = true
			blocks = append(blocks, baselineBlock{nil, e.line()})
		}
	}
	slices.SortStableFunc(blocks, func(x, y baselineBlock) int { return strings.Compare(x.Fingerprint, y.Fingerprint) })
	b.lines = b.lines[:0:0]
	for _, block := range blocks {
		for _, c := range block.comments {
			b.lines = append(b.lines, baselineLine{text: c})
		}
		b.lines = append(b.lines, block.baselineLine)
	}
	for _, c := range comments {
		b.lines = append(b.lines, baselineLine{text: c})
	}
}

// A baselineBlock is the line of an error, and the comments before it, which move with it.
type baselineBlock struct {
	comments []string
	baselineLine
}

// line returns the line of a new entry.
func (e *Entry) line() baselineLine {
	b := []byte(e.Fingerprint)
	for _, s := range []string{e.Kind, e.Function, e.File, e.Program} {
		if len(s) > maxField {
			s = strings.ToValidUTF8(s[:maxField], "") + "..."
		}
		if s == "" {
			s = missingField
		}
		b = append(b, '\t')
		b = escape.AppendText(b, strings.ReplaceAll(s, untilWord, `until\x3d`), "")
	}
	return baselineLine{text: string(b), Entry: *e}
}

// Append appends the content of the file to dst.
func (b *Baseline) Append(dst []byte) []byte {
	dst = append(append(append(dst, heading...), b.sources...), '\n')
	for i := range b.lines {
		dst = append(append(dst, b.lines[i].text...), '\n')
	}
	return dst
}
