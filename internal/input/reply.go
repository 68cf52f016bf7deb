package input

import (
	"bytes"
	"io"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/lines"
)

// A Reply answers each line of JSON with one object on a line. Programs such as rsyslog's
// mmexternal update their messages with the answers. The object has only the members that filtering
// changes, with their new strings, in the original nesting. A text without output, such as
// {{{reset}}}, counts as unchanged. The object is {} if nothing changes. It is also {} for a line
// that is not a JSON object, is longer than 1 MiB, or has more than 8 MiB of new text.
//
// Write writes the replies to all its lines before it returns, and holds no line back. So frames of
// a raw backtrace without build IDs are judged line by line. A module and its maps are merged only
// within one string. A Reply is not safe for concurrent use.
type Reply struct {
	w        io.Writer
	names    []string  // filtered members
	keys     keyReader // finds the process of a line
	lines    *filter.Lines
	contexts contexts
	changed  bool // the contexts have changed since the last call of ProcessesChanged

	cut    lines.Cutter
	err    error
	out    []byte  // replies to write
	fields []field // scratch: fields of the current line
	text   []byte  // scratch: texts of the fields
	got    []byte  // scratch: new texts
	path   []byte  // scratch: path of a jsonScan
	key    []byte  // scratch
	edits  []field // scratch: fields that change
}

// A contexts has the contexts of processes by key: see [access.Contexts].
type contexts interface {
	Of(key []byte) *filter.Context // valid until the next call
	AppendProcesses(dst []byte) []byte
	Restore(context []byte) error
}

// noChange is the reply for an unchanged line.
const noChange = "{}\n"

// NewReply returns a Reply that filters with the options o, and writes to w. The values of keys
// name the process of a line. fields are the filtered members. Both have the form of
// [DefaultFields]. If fields is empty, DefaultFields are used. Options for output have no effect.
func NewReply(o filter.Options, w io.Writer, keys, fields []string) *Reply {
	r := &Reply{w: w, names: fields, keys: keyReader{names: keys}, cut: lines.Cutter{Max: maxLine}}
	if len(fields) == 0 {
		r.names = DefaultFields()
	}
	o.Output, o.Printer, o.Terminal = filter.Text, nil, false
	r.lines, r.contexts = filter.NewLines(o), access.Contexts(o.Limits, o.Evicted).(contexts)
	return r
}

// Lines returns the Lines of the Reply, for their counts. Callers must not call Append.
func (r *Reply) Lines() *filter.Lines { return r.lines }

// Write answers the lines in p, and keeps an unfinished last line. On return, all replies are
// written.
func (r *Reply) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && r.err == nil; {
		var b []byte
		var kind lines.Kind
		switch b, kind, rest = r.cut.Line(rest); kind {
		case lines.Whole:
			r.line(b)
		case lines.Rest:
			if b[len(b)-1] == '\n' {
				r.out = append(r.out, noChange...)
			}
		}
		if len(r.out) >= bufSize {
			r.flush()
		}
	}
	r.flush()
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// Close answers a last line without a line end.
func (r *Reply) Close() error {
	switch tail, long := r.cut.Finish(); {
	case long:
		r.out = append(r.out, noChange...)
	case len(tail) > 0:
		r.line(tail)
	}
	r.flush()
	return r.err
}

func (r *Reply) flush() {
	if len(r.out) > 0 && r.err == nil {
		_, r.err = r.w.Write(r.out)
	}
	if r.out = r.out[:0]; cap(r.out) > 4*bufSize {
		r.out = nil
	}
}

func (r *Reply) line(line []byte) {
	line = bytes.TrimRight(line, "\r\n")
	s := jsonScan{b: line, names: r.names, fields: r.fields[:0], text: r.text[:0], path: r.path[:0]}
	r.keys.begin(&s)
	fields, ok := s.found(&r.text)
	r.path = s.path[:0]
	r.fields = fields[:0]
	if !ok || len(fields) > 0 && fields[0].form == wholeLine {
		r.out = append(r.out, noChange...)
		return
	}
	r.key = r.keys.found(r.key[:0], line)
	context := r.contexts.Of(r.key)
	c := changes{b: line, fields: r.edits[:0]}
	r.got = r.got[:0]
	for i := range fields {
		f := &fields[i]
		from := len(r.got)
		var outcome filter.Outcome
		r.got, outcome = r.lines.Append(r.got, context, f.text)
		r.changed = r.changed || outcome.Changed
		if len(r.got) > maxRecord {
			c.fields = nil
			break
		}
		if out := r.got[from:]; len(out) > 0 && !bytes.Equal(out, f.text) {
			f.text = out
			c.fields = append(c.fields, *f)
		}
	}
	r.edits = c.fields[:0]
	if cap(r.got)+cap(r.text) > maxScratch {
		defer func() { r.got, r.text = nil, nil }()
	}
	if len(c.fields) == 0 {
		r.out = append(r.out, noChange...)
		return
	}
	r.out = append(c.append(r.out), '\n')
}

// AppendProcesses appends the contexts of all processes, in a form that Restore reads.
func (r *Reply) AppendProcesses(dst []byte) []byte { return r.contexts.AppendProcesses(dst) }

// ProcessesChanged reports whether the contexts have changed since the last call of
// ProcessesChanged.
func (r *Reply) ProcessesChanged() bool {
	changed := r.changed
	r.changed = false
	return changed
}

// Restore sets the contexts of a new Reply from an output of AppendProcesses.
func (r *Reply) Restore(context []byte) error { return r.contexts.Restore(context) }

// A changes makes an object with the changed members of a line.
type changes struct {
	b      []byte  // the line, an object in JSON
	fields []field // changed fields, in order, with their new texts
}

func (c *changes) append(dst []byte) []byte {
	s := jsonScan{b: c.b}
	s.blanks()
	s.at++ // the brace
	return c.object(dst, &s, 1)
}

// object appends the changed members of the object whose opening brace s has read. jsonFields must
// have found all of c.fields in the object, which is then valid and not too deep.
func (c *changes) object(dst []byte, s *jsonScan, depth int) []byte {
	dst = append(dst, '{')
	for n := 0; len(c.fields) > 0; {
		s.blanks()
		if s.next(',') {
			s.blanks()
		}
		name := s.at
		if !s.next('"') || !s.str() {
			break // the end of the object
		}
		end := s.at
		s.blanks()
		s.next(':')
		s.blanks()
		from, object := s.at, s.at < len(s.b) && s.b[s.at] == '{'
		if !s.value(depth) {
			break
		}
		if len(c.fields) == 0 || c.fields[0].from >= s.at {
			continue
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, c.b[name:end]...), ':')
		if object {
			inner := jsonScan{b: c.b, at: from + 1}
			dst = c.object(dst, &inner, depth+1)
			continue
		}
		f := &c.fields[0]
		quoted := f.form != byteArray
		if quoted {
			dst = append(dst, '"')
		}
		dst = f.append(dst, c.b, f.text, false)
		if quoted {
			dst = append(dst, '"')
		}
		c.fields = c.fields[1:]
	}
	return append(dst, '}')
}
