package dialect

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/symfilter/symfilter/buildid"
)

// In a crash report of Swift on Linux, a frame without debug information has one of these forms:
//
//	0               0x000055d0c0a013cb <unknown> in inventory
//	1 [ra]          0x00007f31c2a01154 ledger_audit + 20 in libledger.so
//	2 [ra] [system] 0x00007f31c2a2724a
//
// "[ra]" marks a return address, and "[async]" the beginning of a continuation. Other addresses are
// exact. After the frames follow the modules, each with the range of its code, its build ID, name
// and path:
//
//	0x000055d0c0a00000–0x000055d0c0a05c48 3a0a920c3f1b7c55 inventory /opt/shop/inventory
//
// With SWIFT_BACKTRACE=format=json, all of this is one object on a line.
var swift = Dialect{
	Name: "swift", Who: "Swift's crash reports on Linux",
	Needs:  "the list of images that follows",
	Sample: "1 [ra] 0x00007f31c2a01154 ledger_audit + 20 in libledger.so",
}

const (
	swiftLines  = 4096 // lines from the crash to the images: threads, their registers, source code
	swiftDash   = "–"  // between two addresses
	swiftNoName = "<unknown>"
)

func matchSwift(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	start, number, attributes, ok2 := swiftIndex(b, at)
	if !ok || !ok2 || !isLong(b, at) || addr < firstAddress || bytes.Contains(attributes, []byte("[inlined]")) {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, start
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Exact
	if bytes.HasPrefix(attributes, []byte("[ra]")) {
		f.Call = Return
	}
	to := len(bytes.TrimRight(b, " \t"))
	if to <= end {
		l.edit(f, Edit{Span{end, end}, " ", Spaced, ""})
		l.edit(f, Edit{Span{end, end}, " at ", AtColumn, ""})
		return true
	}
	const in = " in "
	name := Span{end + 1, bytes.LastIndex(b[:to], []byte(in))}
	if b[end] != ' ' || name.To <= name.From {
		return false
	}
	module := b[name.To+len(in) : to]
	if len(module) == 0 || len(module) > maxPath || bytes.Contains(module, []byte(" at ")) {
		return false // the line already has an answer
	}
	f.Module = r.modules.name(module)
	part := Spaced
	if text := b[name.From:name.To]; string(text) != swiftNoName {
		part = FuncAt
		f.swiftSymbol(text)
	}
	l.edit(f, Edit{name, "", part, ""})
	l.edit(f, Edit{Span{to, to}, " at ", AtColumn, ""})
	return true
}

// swiftAttributes are the marks between the number of a frame and its address.
var swiftAttributes = []string{"[ra]", "[async]", "[inlined]", "[thunk]", "[system]"}

// swiftIndex parses the number and the attributes before the address at the given offset.
func swiftIndex(b []byte, at int) (start, number int, attributes []byte, ok bool) {
	from := blanksBefore(b, at)
	blanks, end := at-from, from
	for from > 0 && b[from-1] == ']' {
		i := slices.IndexFunc(swiftAttributes, func(a string) bool { return endsWith(b, from, a) })
		if i < 0 {
			return 0, 0, nil, false
		}
		from = blanksBefore(b, from-len(swiftAttributes[i]))
	}
	number, start, ok = decimalBefore(b, from)
	// without attributes, at least two blanks are between the number and the address
	if !ok || blanks == 0 || from == end && blanks < 2 || start > 0 && b[start-1] != ' ' && b[start-1] != '\t' {
		return 0, 0, nil, false
	}
	return start, number, bytes.TrimSpace(b[from:end]), true
}

// swiftSymbol sets the symbol of f from a function and a distance.
func (f *Frame) swiftSymbol(b []byte) {
	name, distance, _ := bytes.Cut(b, []byte(" + "))
	n, end, ok := decimalAt(distance, 0)
	switch {
	case len(distance) == 0:
		f.Symbol = Symbol{Name: string(b)}
	case ok && end == len(distance):
		f.Symbol = Symbol{Name: string(name), Offset: int64(n)}
	}
}

// swiftImage matches a module of the list after the frames, whose base is at the given offset.
func swiftImage(r *Reader, l *Line, at int) bool {
	b := l.Text
	base, to, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, to, swiftDash) {
		return false
	}
	end, to, ok := prefixedHex(b, to+len(swiftDash))
	words := bytes.Fields(b[to:])
	if !ok || len(words) < 3 || !r.inTrace() && r.opened()&windowSwift == 0 {
		return false
	}
	path := bytes.TrimSpace(b[bytes.LastIndex(b, words[1])+len(words[1]):])
	if slash := bytes.IndexByte(b[to:], '/'); slash >= 0 {
		path = bytes.TrimSpace(b[to+slash:])
	}
	id, _ := r.modules.id(words[0])
	r.swiftModule(string(path), id, base, end)
	return true
}

func (r *Reader) swiftModule(path string, id buildid.ID, base, end uint64) {
	if path == "" || len(path) > maxPath || path[0] != '/' || base >= end {
		return
	}
	r.facts.addListed(Map{Start: base, End: end, Path: path, Code: true}, 0, r.number)
	r.facts.AddModule(ModuleFact{Name: path, ID: id, Base: base, HasBase: true})
}

type swiftReport struct {
	Threads []struct {
		Frames []json.RawMessage // each a swiftFrame
	}
	Images []struct {
		BuildID     string
		Path        string
		BaseAddress string
		EndOfText   string
	}
}

type swiftFrame struct {
	Kind     string
	Address  string
	Symbol   string
	Offset   int64
	Image    string
	Inlined  bool
	Location json.RawMessage `json:"sourceLocation"`
	Answer   json.RawMessage `json:"symbolized"`
}

// matchSwiftJSON matches a report in the form of a JSON object. Its description has the fault's
// address at the given offset.
func matchSwiftJSON(r *Reader, l *Line, at int) bool {
	b := l.Text
	start := bytes.IndexByte(b[:at], '{')
	_, end, _ := prefixedHex(b, at)
	if start < 0 || !isLong(b, at) || !endsWith(b, at, " at ") || !hasAt(b, end, `",`) || !bytes.Contains(b[:at], []byte(`"kind": "crashReport"`)) || r.inPast ||
		bytes.Contains(b[start:at], []byte("0x")) { // parse a damaged line once, not at each number
		return false
	}
	var report swiftReport
	if json.NewDecoder(bytes.NewReader(b[start:])).Decode(&report) != nil {
		return false
	}
	r.facts.touch(r.number)
	r.facts.ForgetMaps()
	for _, m := range report.Images {
		base, _, ok1 := prefixedHex([]byte(m.BaseAddress), 0)
		end, _, ok2 := prefixedHex([]byte(m.EndOfText), 0)
		id, _ := buildid.Parse([]byte(m.BuildID))
		if ok1 && ok2 {
			r.swiftModule(m.Path, id, base, end)
		}
	}
	from := start
	for _, t := range report.Threads {
		for _, object := range t.Frames {
			i := bytes.Index(b[from:], object)
			if i < 0 || len(l.Frames) == maxJSONFrames {
				return len(l.Frames) > 0
			}
			from += i
			r.swiftObject(l, from, object)
			from += len(object)
		}
	}
	return len(l.Frames) > 0
}

// swiftObject adds the frame in an object, which begins at the given offset, to l.
func (r *Reader) swiftObject(l *Line, at int, object []byte) {
	var m swiftFrame
	if json.Unmarshal(object, &m) != nil || m.Answer != nil || m.Location != nil || m.Inlined {
		return
	}
	addr, _, ok := prefixedHex([]byte(m.Address), 0)
	if !ok || addr < firstAddress {
		return
	}
	f := l.frame()
	f.Module = m.Image
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Exact
	if m.Kind == "returnAddress" {
		f.Call = Return
	}
	if m.Symbol != "" && m.Symbol != swiftNoName {
		f.Symbol = Symbol{Name: m.Symbol, Offset: m.Offset}
	}
	f.Start, f.Inline = at, Innermost
	end := at + len(bytes.TrimRight(object[:len(object)-1], " "))
	l.edit(f, Edit{Span{end, end}, `, "symbolized": [`, Strings, "]"})
}
