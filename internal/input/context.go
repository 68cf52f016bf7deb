package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/checkpoint"
)

// A writerContext is the part of a Writer's state that survives a restart.
type writerContext struct {
	Version int             `json:"v"`
	Input   string          `json:"input"`             // the format
	UTF16   *utf16Context   `json:"utf16,omitempty"`   // nil: not UTF-16
	Watch   *watchContext   `json:"watch,omitempty"`   // nil: no report may begin
	Head    checkpoint.Text `json:"head,omitempty"`    // bytes of an unknown format
	Context json.RawMessage `json:"context,omitempty"` // context of the translator
}

type watchContext struct {
	Seen    int  `json:"seen"`
	MidLine bool `json:"midline,omitempty"`
}

type utf16Context struct {
	Big     bool   `json:"big,omitempty"`     // the high byte comes first
	Kept    []byte `json:"half,omitempty"`    // not decoded yet
	High    rune   `json:"high,omitempty"`    // first surrogate of a pair
	MidLine bool   `json:"midline,omitempty"` // the last unit did not end a line
}

// A remembering is a translator that can save its context, from which a later translator can
// continue.
type remembering interface {
	AppendContext(dst []byte) []byte
	Restore(context []byte) error
}

// AppendContext appends the state of the Writer as one line of JSON without a line end: see
// [filter.Filter.AppendContext]. It returns false for a compressed input, or a format without a
// context. Such an input must be reread from its start.
func (w *Writer) AppendContext(dst []byte) (context []byte, ok bool) {
	if w.packed != nil {
		return dst, false
	}
	s := writerContext{Version: checkpoint.Version, Input: w.format.String()}
	if d := w.decoder; d != nil {
		s.UTF16 = &utf16Context{Big: d.big, Kept: d.kept, High: d.high, MidLine: d.midLine}
	}
	s.Head = w.head
	if w.dst == nil {
		return checkpoint.Append(dst, s), true
	}
	inner, ok := w.dst.(remembering)
	if !ok {
		return dst, false
	}
	if v := w.watch; v != nil {
		s.Watch = &watchContext{v.seen, v.midLine}
	}
	s.Context = inner.AppendContext(nil)
	return checkpoint.Append(dst, s), true
}

// A processKeeper is a translator whose processes a later translator can continue.
type processKeeper interface {
	AppendProcesses(dst []byte) []byte
	ProcessesChanged() bool
	Restore(context []byte) error
}

// processes returns the translator's methods for processes. It returns nil for an unknown format, a
// compressed input, or a format that is not a log.
func (w *Writer) processes() processKeeper {
	if w.packed != nil {
		return nil
	}
	if e, ok := w.dst.(*Envelope); ok {
		return access.Filter(e.Filter()).(processKeeper)
	}
	p, _ := w.inner().(processKeeper)
	return p
}

// AppendProcesses appends the context of the input's processes so far: modules, maps and open
// hexdicts. It omits unfinished and held lines, since the next input is a separate stream. It
// returns false for an unknown format, a compressed input, or a format that is not a log.
func (w *Writer) AppendProcesses(dst []byte) (context []byte, ok bool) {
	if p := w.processes(); p != nil {
		return p.AppendProcesses(dst), true
	}
	return dst, false
}

// ProcessesChanged reports whether the context of AppendProcesses has changed since the previous
// call of ProcessesChanged. It is cheap.
func (w *Writer) ProcessesChanged() bool {
	p := w.processes()
	return p != nil && p.ProcessesChanged()
}

// Remember gives a new Writer the processes of an earlier input. context is a result of
// AppendProcesses, and is used once the format is known. An input that has no processes ignores it.
// Errors are as in [filter.Filter.Restore].
func (w *Writer) Remember(context []byte) error {
	if err := filter.New(nil, filter.Options{}).Restore(context); err != nil {
		return err
	}
	w.earlier = context
	return nil
}

func (w *Writer) remember() {
	if p := w.processes(); p != nil && len(w.earlier) > 0 {
		p.Restore(w.earlier) // cannot fail: Remember has restored the same context
	}
	w.earlier = nil
}

// Restore restores the state from a context that AppendContext made. The Writer must be new. The
// error wraps an error of package checkpoint: the context is torn, damaged or from another version.
// After an error, the Writer must not be used.
func (w *Writer) Restore(context []byte) error {
	inner, err := w.restore(context)
	if err != nil {
		return fmt.Errorf("restore the context of an input: %w", err)
	}
	if inner == nil {
		return nil
	}
	return w.dst.(remembering).Restore(inner)
}

// restore sets the state of the Writer. It returns the context of the translator if the format is
// known.
func (w *Writer) restore(context []byte) (inner []byte, err error) {
	var s writerContext
	if err := checkpoint.Decode(context, &s); err != nil {
		return nil, err
	}
	format := Format(max(0, slices.Index(Names(), s.Input)))
	switch {
	case format.String() != s.Input:
		return nil, checkpoint.Damaged("%.20q is not a format", s.Input)
	case len(s.Head) > headSize, len(s.Context) > 0 && (format == Auto || len(s.Head) > 0 && s.Watch == nil):
		return nil, checkpoint.Damaged("the saved beginning of the input is too long, or does not fit its format")
	case w.format != Auto && w.format != format:
		return nil, fmt.Errorf("saved from an input of format %v, not %v", format, w.format)
	case s.UTF16 != nil && (len(s.UTF16.Kept) > headSize || s.UTF16.High != 0 && (s.UTF16.High < 0xd800 || s.UTF16.High >= 0xdc00)):
		return nil, checkpoint.Damaged("the unfinished UTF-16 character is not valid")
	}
	if u := s.UTF16; u != nil {
		w.begun = true
		w.decoder = &utf16Decoder{big: u.Big, kept: u.Kept, high: u.High, midLine: u.MidLine}
	}
	if len(s.Context) == 0 {
		w.head = s.Head
		return nil, nil
	}
	w.format, w.begun = format, true
	w.zeros.n = watchedBytes // the beginning is past
	if v := s.Watch; v != nil && format == Markup && v.Seen >= 0 {
		w.watch, w.head = &reportWatch{v.Seen, v.MidLine}, s.Head
	}
	w.open()
	if _, ok := w.dst.(remembering); !ok {
		return nil, checkpoint.Damaged("a context is saved for an input of format %v, which cannot have one", format)
	}
	return s.Context, nil
}

// An envelopeContext is the part of an Envelope's state that survives a restart.
type envelopeContext struct {
	Version  int                          `json:"v"`
	Envelope string                       `json:"envelope"` // the format
	Tail     checkpoint.Text              `json:"tail,omitempty"`
	Long     bool                         `json:"long,omitempty"`
	Doubt    bool                         `json:"doubt,omitempty"`
	Entry    *entryContext                `json:"entry,omitempty"` // unfinished entry of a journal
	Streams  [2]streamContext             `json:"streams"`
	Held     checkpoint.List[heldContext] `json:"held,omitempty"`
	Filter   json.RawMessage              `json:"filter"`
}

type entryContext struct {
	Tail checkpoint.Text `json:"tail,omitempty"`
	Long bool            `json:"long,omitempty"`
	Skip uint64          `json:"skip,omitempty"`
	Mid  bool            `json:"mid,omitempty"`
}

type streamContext struct {
	Begun bool            `json:"begun,omitempty"`
	Long  bool            `json:"long,omitempty"`
	Out   checkpoint.Text `json:"out,omitempty"`
	Raw   checkpoint.Text `json:"raw,omitempty"` // lines of held parts
}

// A heldContext is the envelope of a line that the filter holds: the module line, or a line of a
// backtrace.
type heldContext struct {
	Line  int64                            `json:"line"`
	Last  int64                            `json:"last"`
	Parts checkpoint.List[checkpoint.Text] `json:"parts,omitempty"` // lines without text
	Raw   checkpoint.Text                  `json:"raw,omitempty"`   // input lines; replaces parts
	// for a record in Raw: for each field so far, the end of its output in Got
	Ends  []int           `json:"ends,omitempty"`
	Out   checkpoint.Text `json:"out,omitempty"`
	Open  bool            `json:"open,omitempty"`
	NoEnd bool            `json:"noend,omitempty"`
	// output for these lines so far
	Got checkpoint.Text `json:"got,omitempty"`
}

// AppendContext appends the state of the Envelope and its filter: see
// [filter.Filter.AppendContext].
func (e *Envelope) AppendContext(dst []byte) []byte {
	s := envelopeContext{
		Version: checkpoint.Version, Envelope: e.format.String(),
		Doubt:  e.doubt,
		Filter: e.f.AppendContext(nil),
	}
	s.Tail, s.Long = e.cut.Unfinished()
	if c := &e.entries; e.format == Journal {
		s.Entry = &entryContext{c.tail, c.long, c.skip, c.mid}
	}
	for i := range e.streams {
		from := &e.streams[i]
		s.Streams[i] = streamContext{from.begun, from.long, from.out, from.raw}
	}
	for _, l := range e.out.queue {
		h := heldContext{Line: l.line, Last: l.last, Out: l.out, Open: l.open, NoEnd: l.noEnd, Got: l.got, Raw: l.raw}
		if l.fields != nil {
			h.Ends = []int{}
			for i := range l.field {
				h.Ends = append(h.Ends, l.fields[i].end)
			}
			h.Ends = append(h.Ends, len(l.got))
		}
		for _, p := range l.parts {
			if len(l.raw) == 0 {
				h.Parts = append(h.Parts, bytes.TrimSuffix(e.c.seal(nil, p, nil, p.whole, false), newline))
			}
		}
		s.Held = append(s.Held, h)
	}
	return checkpoint.Append(dst, s)
}

// Restore restores the state from a context that AppendContext made. The Envelope must be new.
// After an error, neither the Envelope nor its filter may be used.
func (e *Envelope) Restore(context []byte) error {
	var s envelopeContext
	err := checkpoint.Decode(context, &s)
	if err == nil && (s.Envelope != e.format.String() || len(s.Tail) > maxLine || s.Long && len(s.Tail) > 0 || bytes.Contains(s.Tail, newline)) {
		err = checkpoint.Damaged("its last line is not an unfinished line of format %v", e.format)
	}
	for i := 0; i < len(s.Streams) && err == nil; i++ {
		err = e.restoreStream(i, s.Streams[i])
	}
	if err == nil {
		e.cut.Resume(s.Tail, s.Long)
		e.doubt = s.Doubt
		if c := s.Entry; c != nil && e.format == Journal {
			e.entries = entryCutter{tail: c.Tail, long: c.Long, skip: c.Skip, mid: c.Mid}
		}
		for i := 0; i < len(s.Held) && err == nil; i++ {
			err = e.restoreHeld(&s.Held[i])
		}
	}
	if err == nil {
		if err := e.f.Restore(s.Filter); err != nil {
			return err
		}
		e.catchUp() // with other options, the filter may hold fewer lines
	}
	if err != nil {
		return fmt.Errorf("restore the context of a container's log: %w", err)
	}
	return nil
}

func (e *Envelope) restoreStream(i int, from streamContext) error {
	s := &e.streams[i]
	s.begun, s.long, s.out = from.Begun, from.Long, from.Out
	for line := range bytes.Lines(from.Raw) {
		p, text, ok := e.c.open(bytes.TrimSuffix(line, newline), &e.text)
		if !ok || p.stderr != (i == 1) {
			return checkpoint.Damaged("%.20q is not a line of a container's log", line)
		}
		e.hold(s, p, text, line)
	}
	if len(s.out) > maxLine+maxHeld || len(s.raw) > maxHeld || (len(s.parts) > 0 || len(s.out) > 0) && !s.begun {
		return checkpoint.Damaged("the parts of a line are not valid")
	}
	return nil
}

func (e *Envelope) restoreHeld(from *heldContext) error {
	l := &seal{line: from.Line, last: from.Last, out: from.Out, raw: from.Raw, open: from.Open, noEnd: from.NoEnd, got: from.Got}
	if from.Ends != nil {
		return e.restoreRecord(l, from.Ends)
	}
	lines := from.Parts
	for line := range bytes.Lines(from.Raw) {
		lines = append(lines, bytes.TrimSuffix(line, newline))
	}
	if len(from.Raw) > 0 {
		l.text = slices.Clone(l.out)
	}
	for _, line := range lines {
		p, text, ok := e.c.open(line, &e.text)
		if !ok {
			return checkpoint.Damaged("%.20q is not a line of a container's log", line)
		}
		l.parts = append(l.parts, p)
		if len(from.Raw) > 0 {
			l.text = append(l.text, text...)
		}
	}
	return e.restoreSeal(l, len(l.parts) > 0)
}

// restoreRecord restores a record. ends has the end in l.got of each field's output, if it has
// begun.
func (e *Envelope) restoreRecord(l *seal, ends []int) error {
	fields, ok := []field(nil), false
	if e.c.open == nil {
		if fields, ok = e.fieldsOf(nil, l.raw); e.lines {
			l.prefix = e.shown(l.raw)
		}
	} else if p, text, is := e.c.open(bytes.TrimSuffix(l.raw, newline), &e.text); is {
		l.parts, l.text = []part{p}, text
		fields, ok = e.jsonFields(nil, text, &e.inner)
	} else {
		fields, ok = e.fieldsOf(nil, l.raw)
	}
	e.text, e.inner = nil, nil // the fields refer to them
	if !ok || len(ends) == 0 || len(ends) > max(len(fields), 1) || !slices.IsSorted(ends) || ends[0] < 0 || ends[len(ends)-1] > len(l.got) {
		return checkpoint.Damaged("%.20q is not a valid held record", l.raw)
	}
	last := l.line - 1
	for i := range fields {
		f := &fields[i]
		last += f.lines()
		if f.last = last; i < len(ends)-1 {
			f.end = ends[i]
		}
	}
	if l.fields, l.field = fields, len(ends)-1; fields == nil {
		l.fields = []field{}
	}
	return e.restoreSeal(l, last == l.last)
}

func (e *Envelope) restoreSeal(l *seal, ok bool) error {
	q := e.out.queue
	if !ok || l.line <= 0 || l.last < l.line-1 || len(q) > 0 && q[len(q)-1].last >= l.line || e.out.queued > 2*maxQueued {
		return checkpoint.Damaged("the lines that are held are not valid")
	}
	e.out.enqueue(l)
	return nil
}
