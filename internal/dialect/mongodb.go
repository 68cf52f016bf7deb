package dialect

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/symfilter/symfilter/buildid"
)

// MongoDB prints a trace on one line: in a member of the log's JSON, or before version 4.4 as the
// whole line:
//
//	{"backtrace":[{"a":"55D0C0A013CB","b":"55D0C0A00000","o":"13CB","s":"_ZN5mongo…","s+":"25"}],
//	 "processInfo":{"somap":[{"b":"55D0C0A00000","path":"/opt/shop/libledger.so","buildId":"3A0A…"}]}}
//
// The member a is a return address, b the load base of its module, and o the offset from the base,
// all in hexadecimal. The list of modules in the same line has the build ID for each base. Without
// this list, a low base is the program's. From version 4.4 on, a line with the message "Frame"
// follows for each frame. An answer is a new member of the frame's object: the line stays valid
// JSON.
//
//	{"a":"7F31C2A01154","b":"7F31C2A00000","o":"1154","symbolized":["ledger_audit at ledger.cc:24"]}
var mongodb = Dialect{
	Name: "mongodb", Who: "MongoDB",
	Needs:  "the build IDs in the line, or --image mongod=FILE",
	Sample: `{"backtrace":[{"b":"7F31C2A00000","o":"1154"}],"processInfo":{"somap":[{"b":"7F31C2A00000","path":"/opt/shop/libledger.so","buildId":"3A0A920C3F1B7C55"}]}}`,
}

const (
	maxJSONFrames = 512 // frames in an object of JSON; MongoDB prints at most 100
	mongoProgram  = "mongod"

	// On x86-64, firstMapped is above the base of any program and below the base of any library.
	// Linux loads programs at two thirds of the address space (ELF_ET_DYN_BASE), plus a random
	// offset of up to 2^40. It loads libraries at the end of the address space.
	firstMapped = 0x7000_0000_0000
)

type mongoFrame struct {
	Addr   string          `json:"a"`
	Base   string          `json:"b"`
	Offset string          `json:"o"`
	Symbol string          `json:"s"`
	Within string          `json:"s+"`
	Answer json.RawMessage `json:"symbolized"`
}

type mongoTrace struct {
	Backtrace   []json.RawMessage // each a mongoFrame
	ProcessInfo struct {
		Somap []struct {
			Base    string `json:"b"`
			Path    string
			BuildID string
		}
	}
}

// matchMongo matches a line whose first frame has its offset at the given index. At other indexes
// it returns false, so a line is parsed only once.
func matchMongo(r *Reader, l *Line, at int) bool {
	b := l.Text
	start := bytes.IndexByte(b[:at], '{')
	if start < 0 || bytes.Contains(b[:at], []byte(`"o"`)) || !bytes.Contains(b[:at], []byte(`"backtrace":[`)) && !bytes.Contains(b[:at], []byte(`"msg":"Frame"`)) {
		return false
	}
	var line struct {
		mongoTrace
		Attr struct {
			BT    mongoTrace
			Frame json.RawMessage
		}
	}
	if json.NewDecoder(bytes.NewReader(b[start:])).Decode(&line) != nil {
		return false
	}
	trace := &line.mongoTrace
	if len(trace.Backtrace) == 0 {
		trace = &line.Attr.BT
	}
	if len(trace.Backtrace) == 0 {
		if !r.inTrace() {
			r.readPast()
		}
		return r.mongoFrame(l, line.Attr.Frame)
	}
	r.facts.touch(r.number)
	for i := range trace.ProcessInfo.Somap {
		m := &trace.ProcessInfo.Somap[i]
		base, ok := mongoHex(m.Base)
		id, err := buildid.Parse(bytes.ToLower([]byte(m.BuildID)))
		if !ok || err != nil || len(m.Path) > maxPath {
			continue
		}
		if m.Path == "" {
			m.Path = mongoProgram // the executable has no path
		}
		r.facts.AddModule(ModuleFact{Name: m.Path, ID: id, Base: base, HasBase: true})
	}
	for _, object := range trace.Backtrace[:min(len(trace.Backtrace), maxJSONFrames)] {
		r.mongoFrame(l, object)
	}
	return len(l.Frames) > 0
}

// mongoFrame adds the frame in an object to l. It must be called in line order.
func (r *Reader) mongoFrame(l *Line, object []byte) bool {
	start := 0
	if n := len(l.Frames); n > 0 {
		start = l.Frames[n-1].Edits[0].To
	}
	at := bytes.Index(l.Text[start:], object)
	var m mongoFrame
	if len(object) == 0 || at < 0 || json.Unmarshal(object, &m) != nil || m.Answer != nil {
		return false
	}
	base, ok1 := mongoHex(m.Base)
	offset, ok2 := mongoHex(m.Offset)
	if !ok1 || !ok2 {
		return false
	}
	module, known := r.facts.Based(base)
	if !known && (base < firstAddress || base%PageSize != 0) {
		return false
	}
	f := l.frame()
	f.Kind, f.Value, f.Addr, f.Call = BaseOffset, offset, base+offset, Return
	switch {
	case known:
		f.Module, f.ID = module.Name, module.ID
	case base < firstMapped:
		f.Module = mongoProgram
	default:
		f.Kind, f.Value = Runtime, base+offset
	}
	if within, ok := mongoHex(m.Within); ok && m.Symbol != "" && within>>62 == 0 {
		f.Symbol = Symbol{Name: m.Symbol, Offset: int64(within)}
	}
	f.Start, f.Inline = start+at, Innermost
	end := f.Start + len(object) - len("}")
	l.edit(f, Edit{Span{end, end}, `,"symbolized":[`, Strings, "]"})
	return true
}

func mongoHex(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 16, 64)
	return n, err == nil
}
