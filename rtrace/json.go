package rtrace

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"unicode/utf8"

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
					b = appendMember(b, string(f.Key), f.Value)
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
			return appendMember(appendHex(b, "mask", rec.Mask), "name", rec.Name)
		case Resource:
			b = appendMember(appendHex(b, "mask", rec.Mask), "name", rec.Name)
			if rec.Description != nil {
				b = appendMember(b, "description", rec.Description)
			}
			if rec.Flags != nil {
				b = appendMember(b, "flags", rec.Flags)
			}
			return b
		}
		return appendMember(appendMember(b, "name", rec.Name), "path", rec.Path)
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
	return appendMember(b, "record", []byte(kind))
}

// addCall adds a call to the object at work.
func (j *jsonPrinter) addCall(rec *Record) {
	j.endCall()
	b := appendMember(append(j.call, '{'), "call", []byte(rec.Kind.String()))
	b = strconv.AppendUint(appendKey(b, "index"), rec.Index, 10)
	if rec.Contexts != 0 {
		b = appendHex(b, "contexts", rec.Contexts)
	}
	if rec.Time != nil {
		b = appendMember(b, "time", rec.Time)
	}
	b = appendMember(b, "function", rec.Function)
	if rec.Type != nil {
		b = appendMember(b, "type", rec.Type)
	}
	if rec.Kind == Alloc {
		b = strconv.AppendInt(appendKey(b, "size"), rec.Size, 10)
	}
	j.call = appendHex(b, "id", rec.ID)
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
		b = strconv.AppendInt(appendKey(b, "blocks"), j.blocks, 10)
		b = strconv.AppendInt(appendKey(b, "size"), j.size, 10)
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
	b = appendMember(b, "path", rec.Path)
	b = appendHex(appendHex(b, "from", rec.From), "to", rec.To)
	m := j.translator.mapped(rec)
	if m == nil || m.file == nil {
		return b
	}
	b = appendMember(b, "file", []byte(m.file.path))
	if !m.file.id.IsZero() {
		b = appendMember(b, "build_id", []byte(m.file.id.String()))
	}
	if m.placed {
		b = appendHex(b, "bias", m.bias())
	}
	return b
}

// site appends the members of a frame.
func (j *jsonPrinter) site(b []byte, rec *Record) []byte {
	b = strconv.AppendUint(appendKey(b, "frame"), rec.Frame, 10)
	b = appendHex(b, "address", rec.Addr)
	s := j.space.site(rec)
	reason := "no mapped file has the address"
	if s.at != nil {
		b = appendMember(b, "module", []byte(s.at.path))
		reason = "the file cannot be used"
	}
	source := ""
	var err error
	if s.usable() {
		a := j.answers.ask(s)
		if !s.at.file.id.IsZero() {
			b = appendMember(b, "build_id", []byte(s.at.file.id.String()))
		}
		b = appendHex(b, "offset", s.rel)
		reason = "no symbol covers the address"
		if err = a.err; err != nil {
			reason = err.Error()
		}
		if a.better(rec) {
			source = "symbols"
			if a.json == nil {
				for i := range a.frames {
					if i > 0 {
						a.json = append(a.json, ',')
					}
					a.json = j.frame(a.json, &a.frames[i])
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
			b = appendString(b, text)
		}
		b = append(b, ']')
	}
	if source == "" {
		j.miss(rec, s, err)
		b = appendMember(b, "reason", []byte(reason))
	}
	return b
}

// frame appends a frame of an answer.
func (j *jsonPrinter) frame(b []byte, f *symbolize.Frame) []byte {
	name := j.o.name(f)
	b = appendMember(append(b, '{'), "function", []byte(name))
	if f.Linkage != "" && f.Linkage != name {
		b = appendMember(b, "linkage", []byte(f.Linkage))
	}
	if f.File != "" {
		b = appendMember(b, "file", []byte(j.o.source(f.File)))
		b = strconv.AppendUint(appendKey(b, "line"), uint64(f.Line), 10)
		b = strconv.AppendUint(appendKey(b, "column"), uint64(f.Column), 10)
	} else {
		b = appendHex(b, "offset", f.Offset)
	}
	return append(strconv.AppendBool(appendKey(b, "inlined"), f.Inlined), '}')
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
		b = appendMember(append(b, '{'), "function", s.function)
		if s.file != nil {
			b = appendMember(b, "file", s.file)
			b = strconv.AppendUint(appendKey(b, "line"), s.line, 10)
		}
		b = append(strconv.AppendBool(appendKey(b, "inlined"), i < len(rec.Said)-1), '}')
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
	return appendMember(appendMember(b, "name", rec.Name), "value", rec.Value)
}

// appendText appends a line, and its bytes where they are no text.
func appendText(b, text []byte) []byte {
	b = appendMember(b, "text", text)
	if !utf8.Valid(text) {
		b = append(b, `,"raw":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, text), '"')
	}
	return b
}

func appendKey(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(strconv.AppendQuote(b, name), ':')
}

// appendHex appends a number as a hex string: JSON's own lose bits beyond 2^53.
func appendHex(b []byte, name string, n uint64) []byte {
	return append(strconv.AppendUint(append(appendKey(b, name), `"0x`...), n, 16), '"')
}

// appendMember appends a member with a string.
func appendMember(b []byte, name string, value []byte) []byte {
	return appendString(appendKey(b, name), value)
}

func appendString(b, value []byte) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(value); {
		c := value[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		n := 1
		r := rune(c)
		if c >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(value[i:])
			if !(r == utf8.RuneError && n == 1) && r >= 0xa0 && r != 0x2028 && r != 0x2029 {
				i += n
				continue
			}
		}
		b = append(b, value[from:i]...)
		switch {
		case r == utf8.RuneError:
			b = append(b, "\ufffd"...)
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
		}
		i += n
		from = i
	}
	return append(append(b, value[from:]...), '"')
}
