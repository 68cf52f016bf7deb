package rtrace

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/symfilter/symfilter/internal/jsonout"
)

// jsonPrinter prints a report as JSON Lines. A call's object contains its arguments and frames.
// Calls that share a backtrace form one object.
type jsonPrinter struct {
	*printer
	process int // number of headers so far, which identifies the process
	begun   bool

	calls     jsonout.Buffer // the calls of the current object
	inCall    bool           // the object of the last call is still open for arguments
	arguments int            // number of arguments of the last call
	frames    jsonout.Buffer // the frames of the current object
	framed    bool           // the calls have frames
	number    int            // number of calls in the object, including its parts already printed
	grouped   bool           // a summary followed the calls
	blocks    int64
	size      int64
	continued bool // the object continues a printed one

	resource []byte // name of the resource in the last comment of leaks; empty if none
}

// Close prints the last object. It does not close the writer.
func (j *jsonPrinter) Close() error {
	err := j.translator.Close()
	j.finish(false)
	return cmp.Or(err, j.send())
}

func (j *jsonPrinter) print(rec *record) error {
	switch rec.Kind {
	case allocRecord, freeRecord:
		j.begun = true
		if !rec.Joined || j.framed {
			j.finish(false)
		}
		j.addCall(rec)
	case argumentRecord:
		if !j.inCall {
			j.begin("argument")
			named(&j.out, rec, "value", rec.Value)
			j.out.EndLine()
			break
		}
		if j.arguments == 0 {
			j.calls.Array("arguments")
		}
		j.arguments++
		j.calls.Item()
		named(&j.calls, rec, "value", rec.Value)
		j.calls.EndObject()
	case frameRecord:
		j.begun = true
		if j.number == 0 {
			j.begin("frame")
			j.site(&j.out, rec)
			j.out.EndLine()
			break
		}
		j.endCall()
		j.framed = true
		j.frames.Item()
		j.site(&j.frames, rec)
		j.frames.EndObject()
	case blankRecord:
		j.finish(false)
	default:
		j.other(rec)
	}
	if len(j.calls)+len(j.frames) > maxObject {
		j.finish(true)
	}
	if len(j.out) >= sendSize {
		return j.send()
	}
	return nil
}

// other prints an object for a record that is neither a call nor part of one. A summary after
// grouped calls has no object of its own: it is printed in the object of these calls.
func (j *jsonPrinter) other(rec *record) {
	switch rec.Kind {
	case commentRecord:
		if blocks, size, ok := parseSummary(bare(rec.Raw)); ok && j.number > 0 {
			j.grouped, j.blocks, j.size = true, blocks, size
			return
		}
		j.begun = true
		j.begin("comment")
		j.out.Text(bare(rec.Raw))
		j.out.EndLine()
		j.leaks(bare(rec.Raw))
		return
	case headerRecord:
		j.finish(false)
		if j.begun {
			j.space.reset()
		}
		j.begun = true
		j.process++
		j.begin("header")
		j.out.Object("fields")
		for i := range rec.Fields {
			if f := &rec.Fields[i]; !hasField(rec.Fields[:i], f.Key) {
				j.out.Key(f.Key)
				j.out.StringItem(f.Value)
			}
		}
		j.out.EndObject()
		j.out.EndLine()
		return
	}
	j.begun = true
	j.finish(false)
	j.begin(rec.Kind.String())
	switch rec.Kind {
	case mapRecord:
		j.mapped(rec)
	case contextRecord:
		j.out.Hex("mask", rec.Mask)
		j.out.Bytes("name", rec.Name)
	case resourceRecord:
		j.out.Hex("mask", rec.Mask)
		j.out.Bytes("name", rec.Name)
		if rec.Description != nil {
			j.out.Bytes("description", rec.Description)
		}
		if rec.Flags != nil {
			j.out.Bytes("flags", rec.Flags)
		}
	default:
		named(&j.out, rec, "path", rec.Path)
	}
	j.out.EndLine()
}

// leaks prints a summary object if the comment is a total of leaks. The name of the resource is
// from the preceding comment.
func (j *jsonPrinter) leaks(comment []byte) {
	resource := j.resource
	j.resource = j.resource[:0]
	if name, ok := cutPrefix(comment, "# Resource - "); ok {
		name, _, _ = bytes.Cut(bytes.TrimSuffix(name, []byte(":")), []byte(" ("))
		j.resource = append(j.resource, name...)
		return
	}
	blocks, size, ok := parseTotal(comment, "# ", "block(s) leaked with total size of ", " bytes")
	if !ok {
		return
	}
	j.begin("summary")
	if len(resource) > 0 {
		j.out.Bytes("resource", resource)
	}
	j.out.Int("blocks", blocks)
	j.out.Int("size", size)
	j.out.EndLine()
}

func (j *jsonPrinter) begin(kind string) {
	j.out.Line()
	j.out.Members(j.o.Members)
	j.out.Int("process", int64(j.process))
	j.out.String("record", kind)
}

func named(b *jsonout.Buffer, rec *record, member string, value []byte) {
	b.Bytes("name", rec.Name)
	b.Bytes(member, value)
}

func (j *jsonPrinter) addCall(rec *record) {
	j.endCall()
	b := &j.calls
	b.Item()
	b.String("call", rec.Kind.String())
	b.Uint("index", rec.Index)
	if rec.Contexts != 0 {
		b.Hex("contexts", rec.Contexts)
	}
	if rec.Time != nil {
		b.Bytes("time", rec.Time)
	}
	b.Bytes("function", rec.Function)
	if rec.Type != nil {
		b.Bytes("type", rec.Type)
	}
	if rec.Kind == allocRecord {
		b.Int("size", rec.Size)
	}
	b.Hex("id", rec.ID)
	j.inCall = true
	j.number++
}

// endCall closes the object of the last call.
func (j *jsonPrinter) endCall() {
	if !j.inCall {
		return
	}
	if j.arguments > 0 {
		j.calls.EndArray()
	}
	j.calls.EndObject()
	j.inCall, j.arguments = false, 0
}

// finish prints the collected calls and their frames as one object. If continues is set, the object
// is marked as unfinished, and the next object has further calls or frames.
func (j *jsonPrinter) finish(continues bool) {
	j.endCall()
	if j.number == 0 {
		return
	}
	j.begin("calls")
	if j.continued {
		j.out.Bool("continued", true)
	}
	if j.grouped {
		j.out.Int("blocks", j.blocks)
		j.out.Int("size", j.size)
	}
	j.out.Array("calls")
	j.out.Values(j.calls)
	j.out.EndArray()
	if j.framed {
		j.out.Array("frames")
		j.out.Values(j.frames)
		j.out.EndArray()
	}
	if continues {
		j.out.Bool("continues", true)
	}
	j.out.EndLine()
	j.calls, j.frames = j.calls[:0], j.frames[:0]
	j.grouped, j.continued = false, continues
	if !continues {
		j.number, j.framed = 0, false
	}
}

// mapped prints a map with its file and load bias.
func (j *jsonPrinter) mapped(rec *record) {
	j.out.Bytes("path", rec.Path)
	j.out.Hex("from", rec.From)
	j.out.Hex("to", rec.To)
	m := j.translator.mapped(rec)
	if m == nil || m.file == nil {
		return
	}
	j.out.String("file", m.file.Path)
	j.out.BuildID(m.file.ID)
	if m.placed {
		j.out.Hex("bias", m.bias())
	}
}

func (j *jsonPrinter) site(b *jsonout.Buffer, rec *record) {
	b.Uint("frame", rec.Frame)
	b.Hex("address", rec.Addr)
	s := j.space.site(rec)
	reason := errUnmapped
	if s.at != nil {
		b.String("module", s.at.path)
		reason = errUnusable
	}
	named := false
	var err error
	if s.usable() {
		a := j.answers.ask(s)
		b.BuildID(s.at.file.ID)
		b.Hex("offset", s.rel)
		err, reason = a.Err, a.Err
		if a.better(rec) {
			j.missing.Named++
			named = true
			if a.json == nil {
				for i := range a.Frames {
					shown := j.o.report().Shown(&a.Frames[i])
					a.json.Frame(&shown)
				}
			}
			b.String("source", "symbols")
			b.Array("frames")
			b.Values(a.json)
			b.EndArray()
		}
	}
	if len(rec.Reported) > 0 {
		named = named || reported(b, rec)
		b.Array("reported")
		for _, text := range rec.Reported {
			b.StringItem(text)
		}
		b.EndArray()
	}
	if !named {
		j.miss(rec, s, err)
		b.Reason(reason)
	}
}

var (
	errUnmapped = errors.New("no mapped file has the address")
	errUnusable = errors.New("the file cannot be used")
)

// reported appends the report's own frames, and returns true. If none of them has a function or a
// source file, it appends nothing and returns false.
func reported(b *jsonout.Buffer, rec *record) (named bool) {
	start := len(*b)
	b.String("source", "report")
	b.Array("frames")
	for i, text := range rec.Reported {
		s := parseSymbol(text)
		named = named || s.function != nil || s.file != nil
		b.Item()
		b.Bytes("function", withoutCall(s.function))
		if s.file != nil {
			b.Bytes("file", s.file)
			b.Uint("line", s.line)
		}
		b.Bool("inlined", i < len(rec.Reported)-1)
		b.EndObject()
	}
	b.EndArray()
	if !named {
		*b = (*b)[:start]
	}
	return named
}

// withoutCall removes the parentheses that reports write after a function's name.
func withoutCall(name []byte) []byte {
	short, _ := bytes.CutSuffix(name, []byte("()"))
	if bytes.HasSuffix(short, []byte("operator")) && isWordAt(string(short), len(short)-len("operator"), len(short)) {
		return name // the name includes the parentheses
	}
	return short
}

func hasField(fields []headerField, key []byte) bool {
	return slices.ContainsFunc(fields, func(f headerField) bool { return bytes.Equal(f.Key, key) })
}

// parseSummary parses the text that follows grouped calls.
func parseSummary(line []byte) (blocks, size int64, ok bool) {
	return parseTotal(line, "# allocation summary: ", "block(s) with total size ", "")
}

// parseTotal parses a number of blocks and their size. before, between and after are the texts
// around them.
func parseTotal(line []byte, before, between, after string) (blocks, size int64, ok bool) {
	rest, ok := cutPrefix(line, before)
	if !ok {
		return 0, 0, false
	}
	count, rest := cutWord(rest)
	total, ok := cutPrefix(rest, between)
	total, ended := bytes.CutSuffix(total, []byte(after))
	if !ok || !ended {
		return 0, 0, false
	}
	n, ok1 := signed(count)
	size, ok2 := signed(trim(total))
	return n, size, ok1 && ok2 && len(count) > 0 && len(total) > 0
}
