package rtrace

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// jsonVersion is the "v" of each object: it changes when a field changes its
// meaning or goes, not when one is added.
const jsonVersion = `{"v":1`

// jsonPrinter prints a report as JSON Lines. An object of a call has its
// arguments and frames; calls that share a backtrace are one object.
type jsonPrinter struct {
	*printer
	process int // reports so far
	begun   bool

	calls     []byte // of the object at work: each "{…}", with ',' between
	call      []byte // the last of them, which arguments may follow
	inCall    bool   // there is one
	arguments int    // of it
	frames    []byte
	number    int  // of calls
	grouped   bool // they are a group, even if there is one
	blocks    int64
	size      int64
	continued bool // a part of the object has been printed
}

// Close prints what is left. It does not close the writer.
func (j *jsonPrinter) Close() error {
	err := j.translator.Close()
	j.finish(false)
	if e := j.send(); err == nil {
		err = e
	}
	return err
}

// print prints a record.
func (j *jsonPrinter) print(rec *Record) error {
	switch rec.Kind {
	case Alloc, Free:
		j.begun = true
		if !rec.Joined || len(j.frames) > 0 {
			j.finish(false)
		}
		j.addCall(rec)
	case Argument:
		if !j.inCall {
			j.object("argument", func(b []byte) []byte { return appendArgument(b, rec) })
			break
		}
		if j.arguments == 0 {
			j.call = append(j.call, `,"arguments":[{`...)
		} else {
			j.call = append(j.call, ",{"...)
		}
		j.arguments++
		j.call = append(appendArgument(j.call, rec), '}')
	case Frame:
		j.begun = true
		if j.number == 0 {
			j.object("frame", func(b []byte) []byte { return j.site(b, rec) })
			break
		}
		j.endCall()
		if len(j.frames) == 0 {
			j.frames = append(j.frames, '[')
		} else if len(j.frames) > 1 {
			j.frames = append(j.frames, ',')
		}
		j.frames = append(j.site(append(j.frames, '{'), rec), '}')
	case Blank:
		j.finish(false)
	default:
		j.other(rec)
	}
	if len(j.calls)+len(j.call)+len(j.frames) > maxObject {
		j.finish(true)
	}
	if len(j.out) >= sendSize {
		return j.send()
	}
	return nil
}

// other prints the records that are an object each.
func (j *jsonPrinter) other(rec *Record) {
	switch rec.Kind {
	case Comment:
		if blocks, size, ok := parseSummary(bare(rec.Raw)); ok && j.number > 0 {
			j.grouped, j.blocks, j.size = true, blocks, size
			return
		}
		j.begun = true
		j.object("comment", func(b []byte) []byte { return appendText(b, bare(rec.Raw)) })
		return
	case Header:
		j.finish(false)
		if j.begun {
			j.space.reset()
		}
		j.begun = true
		j.process++
		j.object("header", func(b []byte) []byte {
			b = append(b, `,"fields":{`...)
			for i := range rec.Fields {
				if f := &rec.Fields[i]; !hasField(rec.Fields[:i], f.Key) {
					b = escape.AppendMember(b, string(f.Key), f.Value)
				}
			}
			return append(b, '}')
		})
		return
	}
	j.begun = true
	j.finish(false)
	j.object(rec.Kind.String(), func(b []byte) []byte {
		switch rec.Kind {
		case Map:
			return j.mapped(b, rec)
		case Context:
			return escape.AppendMember(escape.AppendHex(b, "mask", rec.Mask), "name", rec.Name)
		case Resource:
			b = escape.AppendMember(escape.AppendHex(b, "mask", rec.Mask), "name", rec.Name)
			if rec.Description != nil {
				b = escape.AppendMember(b, "description", rec.Description)
			}
			if rec.Flags != nil {
				b = escape.AppendMember(b, "flags", rec.Flags)
			}
			return b
		}
		return escape.AppendMember(escape.AppendMember(b, "name", rec.Name), "path", rec.Path)
	})
}

// object prints an object.
func (j *jsonPrinter) object(kind string, members func([]byte) []byte) {
	j.out = append(members(j.begin(kind)), "}\n"...)
}

// begin begins an object.
func (j *jsonPrinter) begin(kind string) []byte {
	b := append(j.out, jsonVersion...)
	b = strconv.AppendInt(append(b, `,"process":`...), int64(j.process), 10)
	return escape.AppendMember(b, "record", kind)
}

// addCall adds a call to the object at work.
func (j *jsonPrinter) addCall(rec *Record) {
	j.endCall()
	b := escape.AppendMember(append(j.call, '{'), "call", rec.Kind.String())
	b = strconv.AppendUint(escape.AppendKey(b, "index"), rec.Index, 10)
	if rec.Contexts != 0 {
		b = escape.AppendHex(b, "contexts", rec.Contexts)
	}
	if rec.Time != nil {
		b = escape.AppendMember(b, "time", rec.Time)
	}
	b = escape.AppendMember(b, "function", rec.Function)
	if rec.Type != nil {
		b = escape.AppendMember(b, "type", rec.Type)
	}
	if rec.Kind == Alloc {
		b = strconv.AppendInt(escape.AppendKey(b, "size"), rec.Size, 10)
	}
	j.call = escape.AppendHex(b, "id", rec.ID)
	j.inCall = true
	j.number++
}

// endCall ends the last call.
func (j *jsonPrinter) endCall() {
	if !j.inCall {
		return
	}
	if len(j.calls) > 0 {
		j.calls = append(j.calls, ',')
	}
	j.calls = append(j.calls, j.call...)
	if j.arguments > 0 {
		j.calls = append(j.calls, ']')
	}
	j.calls = append(j.calls, '}')
	j.call, j.inCall, j.arguments = j.call[:0], false, 0
}

// finish prints the calls at work. continues: the rest of them follows in
// another object.
func (j *jsonPrinter) finish(continues bool) {
	j.endCall()
	if j.number == 0 {
		return
	}
	b := j.begin("calls")
	if j.continued {
		b = append(b, `,"continued":true`...)
	}
	if j.grouped {
		b = strconv.AppendInt(escape.AppendKey(b, "blocks"), j.blocks, 10)
		b = strconv.AppendInt(escape.AppendKey(b, "size"), j.size, 10)
	}
	b = append(append(append(b, `,"calls":[`...), j.calls...), ']')
	if len(j.frames) > 0 {
		b = append(append(append(b, `,"frames":`...), j.frames...), ']')
	}
	if continues {
		b = append(b, `,"continues":true`...)
	}
	j.out = append(b, "}\n"...)
	j.calls, j.grouped, j.continued = j.calls[:0], false, continues
	if continues {
		if len(j.frames) > 0 {
			j.frames = append(j.frames[:0], '[')
		}
		return
	}
	j.number, j.frames = 0, j.frames[:0]
}

// mapped appends a map, and what is known of its file.
func (j *jsonPrinter) mapped(b []byte, rec *Record) []byte {
	b = escape.AppendMember(b, "path", rec.Path)
	b = escape.AppendHex(escape.AppendHex(b, "from", rec.From), "to", rec.To)
	m := j.translator.mapped(rec)
	if m == nil || m.file == nil {
		return b
	}
	b = escape.AppendMember(b, "file", m.file.Path)
	if !m.file.ID.IsZero() {
		b = escape.AppendMember(b, "build_id", m.file.ID.String())
	}
	if m.placed {
		b = escape.AppendHex(b, "bias", m.bias())
	}
	return b
}

// site appends the members of a frame.
func (j *jsonPrinter) site(b []byte, rec *Record) []byte {
	b = strconv.AppendUint(escape.AppendKey(b, "frame"), rec.Frame, 10)
	b = escape.AppendHex(b, "address", rec.Addr)
	s := j.space.site(rec)
	reason := "no mapped file has the address"
	if s.at != nil {
		b = escape.AppendMember(b, "module", s.at.path)
		reason = "the file cannot be used"
	}
	source := ""
	var err error
	if s.usable() {
		a := j.answers.ask(s)
		if !s.at.file.ID.IsZero() {
			b = escape.AppendMember(b, "build_id", s.at.file.ID.String())
		}
		b = escape.AppendHex(b, "offset", s.rel)
		reason = "no symbol covers the address"
		if err = a.Err; err != nil {
			reason = err.Error()
		}
		if a.better(rec) {
			source = "symbols"
			if a.json == nil {
				for i := range a.Frames {
					if i > 0 {
						a.json = append(a.json, ',')
					}
					a.json = j.frame(a.json, &a.Frames[i])
				}
			}
			b = append(append(append(b, `,"source":"symbols","frames":[`...), a.json...), ']')
		}
	}
	if len(rec.Said) > 0 {
		if source == "" {
			b = j.reported(b, rec, &source)
		}
		b = append(b, `,"reported":[`...)
		for i, text := range rec.Said {
			if i > 0 {
				b = append(b, ',')
			}
			b = escape.AppendString(b, text)
		}
		b = append(b, ']')
	}
	if source == "" {
		j.miss(rec, s, err)
		b = escape.AppendMember(b, "reason", reason)
	}
	return b
}

// frame appends a frame of an answer.
func (j *jsonPrinter) frame(b []byte, f *symbolize.Frame) []byte {
	name := report.FuncName(j.o.Symbolizer, f)
	b = escape.AppendMember(append(b, '{'), "function", name)
	if f.Linkage != "" && f.Linkage != name {
		b = escape.AppendMember(b, "linkage", f.Linkage)
	}
	if f.File != "" {
		b = escape.AppendMember(b, "file", j.o.ShownFile(f.File))
		b = strconv.AppendUint(escape.AppendKey(b, "line"), uint64(f.Line), 10)
		b = strconv.AppendUint(escape.AppendKey(b, "column"), uint64(f.Column), 10)
	} else {
		b = escape.AppendHex(b, "offset", f.Offset)
	}
	return append(strconv.AppendBool(escape.AppendKey(b, "inlined"), f.Inlined), '}')
}

// reported appends the frames that the report has, if it names any.
func (j *jsonPrinter) reported(b []byte, rec *Record, source *string) []byte {
	start := len(b)
	b = append(b, `,"source":"report","frames":[`...)
	for i, text := range rec.Said {
		s := parseSaid(text)
		if s.function != nil || s.file != nil {
			*source = "report"
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = escape.AppendMember(append(b, '{'), "function", s.function)
		if s.file != nil {
			b = escape.AppendMember(b, "file", s.file)
			b = strconv.AppendUint(escape.AppendKey(b, "line"), s.line, 10)
		}
		b = append(strconv.AppendBool(escape.AppendKey(b, "inlined"), i < len(rec.Said)-1), '}')
	}
	if *source == "" {
		return b[:start]
	}
	return append(b, ']')
}

// hasField reports whether there is a field of this key.
func hasField(fields []Field, key []byte) bool {
	return slices.ContainsFunc(fields, func(f Field) bool { return bytes.Equal(f.Key, key) })
}

// parseSummary reads what stands behind grouped calls.
func parseSummary(line []byte) (blocks, size int64, ok bool) {
	rest, ok := cutPrefix(line, "# allocation summary: ")
	if !ok {
		return 0, 0, false
	}
	count, rest := cutWord(rest)
	total, ok := cutPrefix(rest, "block(s) with total size ")
	if !ok {
		return 0, 0, false
	}
	n, ok1 := signed(count)
	size, ok2 := signed(trim(total))
	return n, size, ok1 && ok2 && len(count) > 0 && len(total) > 0
}

func appendArgument(b []byte, rec *Record) []byte {
	return escape.AppendMember(escape.AppendMember(b, "name", rec.Name), "value", rec.Value)
}

// appendText appends a line, and its bytes where they are no text.
func appendText(b, text []byte) []byte {
	b = escape.AppendMember(b, "text", text)
	if !utf8.Valid(text) {
		b = append(b, `,"raw":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, text), '"')
	}
	return b
}
