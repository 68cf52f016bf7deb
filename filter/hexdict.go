package filter

import (
	"bytes"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/markup"
)

// openDict is a hexdict whose end has not arrived yet. Its lines are printed unchanged, and kept
// for the footnotes.
type openDict struct {
	body   []byte
	lines  int
	prefix []byte // log prefix before the hexdict; nil if there is none
}

// Limits of one hexdict. A longer hexdict is closed at the limit, and its rest has no footnotes.
const (
	maxDict      = 64 << 10 // bytes
	maxDictLines = 256
)

// Limits of all hexdicts that end in one line. A register dump has fewer than 100 values on any
// processor, and a log prefix fewer than 100 bytes.
const (
	// values that are looked up; further values are treated as numbers
	maxNotes = 4 * maxDictLines
	// bytes of all footnotes' prefixes; beyond this, footnotes have no prefix
	maxNotePrefix = 64 << 10
)

// findDict opens a hexdict if one begins in the current line and does not end there. In the rest of
// the line, only colours are interpreted.
func (f *lineFilter) findDict(text []byte) {
	for i := range f.pieces {
		p := &f.pieces[i]
		if p.Kind != markup.Text || p.Tag != markup.TagHexDict || p.Err != nil {
			continue
		}
		rest := text[p.Off:]
		f.process.hex = &openDict{
			body:   append(bytes.Clone(rest[len("{{{hexdict:"):]), '\n'),
			lines:  1,
			prefix: f.prefixOf(p),
		}
		f.openDicts++
		f.changed = true
		for i := i; i < len(f.pieces); i++ {
			p := &f.pieces[i]
			p.Token = markup.Token{Kind: p.Kind, Raw: p.Raw, Off: p.Off}
		}
		if len(f.process.hex.body) > maxDict {
			f.collectFootnotes(f.closeDict())
		}
		return
	}
}

// dictLine cuts text, a line within an open hexdict, into pieces.
func (f *lineFilter) dictLine(text []byte) {
	belongs := f.extendDict(text)
	f.tokens(text) // the hexdict's part has no "{{{", only text and colours
	if !belongs {
		f.findDict(text)
	}
}

// extendDict adds a line to the open hexdict, and reports whether the line, or its start, belongs
// to the hexdict. If it does not, the earlier lines were not a hexdict, and extendDict closes it
// without footnotes.
func (f *lineFilter) extendDict(text []byte) bool {
	d := f.process.hex
	brace := bytes.IndexByte(text, '}')
	open := bytes.Index(text, markupOpen)
	if open >= 0 && (brace < 0 || open < brace) || brace >= 0 && !bytes.HasPrefix(text[brace:], []byte("}}}")) {
		f.closeDict()
		return false
	}
	if brace < 0 {
		d.body = append(append(d.body, text...), '\n')
		d.lines++
		f.changed = true
		if len(d.body) > maxDict || d.lines >= maxDictLines {
			f.collectFootnotes(f.closeDict())
		}
		return true
	}
	d.body = append(d.body, text[:brace]...)
	f.collectFootnotes(f.closeDict())
	return true
}

func (f *lineFilter) closeDict() *openDict {
	d := f.process.hex
	f.process.hex = nil
	f.openDicts--
	f.changed = true
	return d
}

type footnote struct {
	key   string
	value uint64
	answer
}

// collectFootnotes resolves the values of d. The footnotes follow the current line.
func (f *lineFilter) collectFootnotes(d *openDict) {
	if f.footnotes == nil {
		f.footnotePrefix = d.prefix
	}
	var values []DictValue
	f.steps += int64(len(d.body))
	for p := range (markup.HexDict{Body: string(layout.WithoutColor(d.body))}).Pairs() {
		v := DictValue{Key: p.Key, Value: p.Value}
		if f.dictLookups++; f.dictLookups <= maxNotes {
			a, mapped := f.valueAnswer(p.Value)
			if mapped && a.hasText {
				f.footnotes = append(f.footnotes, footnote{p.Key, p.Value, *a})
			}
			if mapped && f.needsSources {
				v.Answer = f.recordValue(p.Value, a)
			}
		}
		if f.records != nil {
			values = append(values, v)
		}
	}
	f.recordElement(len(f.layout.Buf), Element{Tag: markup.TagHexDict, Values: values})
}

// valueAnswer resolves a value as an address of code or data. mapped is false if no map covers the
// value: then it is a number.
func (r *resolver) valueAnswer(value uint64) (a *answer, mapped bool) {
	v := r.space.find(value)
	if v.mod == nil {
		return a, false
	}
	// a number that only looks like an address must not count as unresolved: restore the counts
	failed, counted := r.failed, r.answerCounts
	r.uncounted = true
	defer func() { r.failed, r.answerCounts, r.uncounted = failed, counted, false }()
	if v.mode&markup.Exec != 0 {
		a = r.codeAnswer(value, exactAddress)
	} else {
		a = r.dataAnswer(value)
	}
	return a, true
}

// printFootnotes prints the footnotes of the hexdicts that end in the current line, each on its own
// line:
//
//	[1] RIP 0x6ee17076fb80 → main main.c:7
func (f *lineFilter) printFootnotes(eol []byte) {
	if len(eol) == 0 {
		eol = newline
	}
	notes, prefix := f.footnotes, f.footnotePrefix
	f.footnotes, f.footnotePrefix = nil, nil
	if len(prefix)*len(notes) > maxNotePrefix {
		prefix = nil
	}
	f.steps += int64(len(notes) + len(prefix)*len(notes))
	for i := range notes {
		n := &notes[i]
		f.layout.NextLine(eol)
		f.layout.LogBytes(prefix)
		f.layout.Mark("[")
		f.layout.Value(strconv.Itoa(i + 1))
		f.layout.Mark("] ")
		f.layout.Value(escape.Clean(n.key))
		f.layout.Mark(" ")
		f.layout.Value("0x" + strconv.FormatUint(n.value, 16))
		f.layout.Mark(" → ")
		f.footnoteTarget(&n.answer)
	}
}
