package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A context is a line with an object in JSON, and behind it the context of what
// is given the input. It is ASCII text.

// A writerContext is what a Writer knows.
type writerContext struct {
	Input string `json:"input"`          // the format
	Head  []byte `json:"head,omitempty"` // the input so far, while it is not known what it is
}

// AppendContext appends what the Writer knows of the input so far; see
// [filter.Filter.AppendContext]. It reports false if the format has no context:
// then the input must be read from its beginning again.
func (w *Writer) AppendContext(dst []byte) (context []byte, ok bool) {
	if w.packed != nil {
		return dst, false
	}
	of := writerContext{Input: w.format.String()}
	if w.dst == nil {
		of.Head = w.head
		return appendObject(dst, of), true
	}
	inner, ok := w.dst.(interface{ AppendContext([]byte) []byte })
	if !ok {
		return dst, false
	}
	return inner.AppendContext(appendObject(dst, of)), true
}

// Restore gives a new Writer, to which nothing was written yet, a context that
// AppendContext has made. After an error it must not be used.
func (w *Writer) Restore(context []byte) error {
	var of writerContext
	rest, err := cutObject(context, &of)
	if err != nil {
		return fmt.Errorf("restore the context of an input: %w", err)
	}
	format := Format(0)
	for i, name := range Names() {
		if name == of.Input {
			format = Format(i)
		}
	}
	switch {
	case format.String() != of.Input, len(of.Head) > headSize, len(rest) > 0 && (format == Auto || len(of.Head) > 0):
		return fmt.Errorf("restore the context of an input: %w", errNoContext)
	case w.format != Auto && w.format != format:
		return fmt.Errorf("restore the context of an input: it is of %v, not of %v", format, w.format)
	case len(rest) == 0:
		w.head = of.Head
		return nil
	}
	w.format, w.begun = format, true
	w.open()
	inner, ok := w.dst.(interface{ Restore([]byte) error })
	if !ok {
		return fmt.Errorf("restore the context of an input: %w", errNoContext)
	}
	return inner.Restore(rest)
}

var errNoContext = errors.New("this is no context of this version")

func appendObject(dst []byte, of any) []byte {
	object, err := json.Marshal(of)
	if err != nil {
		panic(err) // nothing of what is given fails
	}
	return append(append(dst, object...), '\n')
}

func cutObject(context []byte, of any) (rest []byte, err error) {
	line, rest, ok := bytes.Cut(context, newline)
	if !ok || json.Unmarshal(line, of) != nil {
		return nil, errNoContext
	}
	return rest, nil
}

// An envelopeContext is what an Envelope knows.
type envelopeContext struct {
	Envelope string           `json:"envelope"` // the format
	Tail     []byte           `json:"tail,omitempty"`
	Long     bool             `json:"long,omitempty"`
	Doubt    bool             `json:"doubt,omitempty"`
	Streams  [2]streamContext `json:"streams"`
	Held     *heldContext     `json:"held,omitempty"`
}

type streamContext struct {
	Begun bool   `json:"begun,omitempty"`
	Long  bool   `json:"long,omitempty"`
	Out   []byte `json:"out,omitempty"`
	Raw   []byte `json:"raw,omitempty"` // the lines of the parts that are held
}

// A heldContext is the envelope of the module line that the filter holds.
type heldContext struct {
	Parts [][]byte `json:"parts"` // lines without text
	Out   []byte   `json:"out,omitempty"`
	Open  bool     `json:"open,omitempty"`
	NoEnd bool     `json:"noend,omitempty"`
	Kept  []byte   `json:"kept,omitempty"`
}

func (e *Envelope) format() Format {
	if e.docker {
		return Docker
	}
	return CRI
}

// AppendContext appends what the Envelope and its filter know of the log so
// far; see [filter.Filter.AppendContext].
func (e *Envelope) AppendContext(dst []byte) []byte {
	of := envelopeContext{Envelope: e.format().String(), Tail: e.tail, Long: e.long, Doubt: e.doubt}
	for i := range e.streams {
		s := &e.streams[i]
		of.Streams[i] = streamContext{s.begun, s.long, s.out, s.raw}
	}
	if l := e.out.held; l != nil {
		of.Held = &heldContext{Out: l.out, Open: l.open, NoEnd: l.noEnd, Kept: e.out.kept}
		for _, p := range l.parts {
			of.Held.Parts = append(of.Held.Parts, bytes.TrimSuffix(e.c.seal(nil, p, nil, p.whole, false), newline))
		}
	}
	return e.f.AppendContext(appendObject(dst, of))
}

// Restore gives a new Envelope, to which nothing was written yet, a context that
// AppendContext has made. After an error, neither it nor its filter must be
// used.
func (e *Envelope) Restore(context []byte) error {
	var of envelopeContext
	rest, err := cutObject(context, &of)
	if err != nil || of.Envelope != e.format().String() || len(of.Tail) > maxLine || bytes.Contains(of.Tail, newline) {
		return fmt.Errorf("restore the context of a container's log: %w", errNoContext)
	}
	e.tail, e.long, e.doubt = of.Tail, of.Long, of.Doubt
	for i, from := range of.Streams {
		s := &e.streams[i]
		s.begun, s.long, s.out = from.Begun, from.Long, from.Out
		for line := range bytes.Lines(from.Raw) {
			p, text, ok := e.c.open(bytes.TrimSuffix(line, newline), &e.text)
			if !ok || p.stderr != (i == 1) {
				return fmt.Errorf("restore the context of a container's log: %w", errNoContext)
			}
			s.hold(p, text, line)
		}
		if len(s.out) > maxLine+maxHeld || len(s.raw) > maxHeld || (len(s.parts) > 0 || len(s.out) > 0) && !s.begun {
			return fmt.Errorf("restore the context of a container's log: %w", errNoContext)
		}
	}
	if err := e.f.Restore(rest); err != nil {
		return err
	}
	e.out.left, e.dict = e.f.Pending()
	if of.Held == nil {
		return nil
	}
	l := &seal{out: of.Held.Out, open: of.Held.Open, noEnd: of.Held.NoEnd}
	for _, line := range of.Held.Parts {
		p, _, ok := e.c.open(line, &e.text)
		if !ok {
			return fmt.Errorf("restore the context of a container's log: %w", errNoContext)
		}
		l.parts = append(l.parts, p)
	}
	if len(l.parts) == 0 || e.out.left == 0 {
		return fmt.Errorf("restore the context of a container's log: %w", errNoContext)
	}
	e.out.held, e.out.kept = l, of.Held.Kept
	return nil
}
