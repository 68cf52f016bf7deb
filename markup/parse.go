package markup

import (
	"bytes"

	"github.com/symfilter/symfilter/buildid"
)

// The parsers take the fields of a token: the bytes between "tag:" and "}}}", nil without a colon.
// They accept the deviations of real emitters, and ignore additional fields, as the spec asks.
// Offsets in their errors are offsets in the fields.
//
// A %p is 0x or 0X and hexadecimal digits, or only zeros. A %i is decimal, hexadecimal with 0x, or
// octal with a leading 0. All must fit into 64 bits. A name has neither '}' nor a line end.

// Parse parses an Elem token with a known tag. The offset in its error is relative to the line. For
// other tokens, Parse returns the token's Err or, if that is nil, an error that a known element was
// expected.
func Parse(t Token) (Element, *SyntaxError) {
	switch {
	case t.Err != nil:
		return nil, t.Err
	case t.Kind != Elem || t.Tag == TagUnknown:
		return nil, &SyntaxError{Off: t.Off, Tag: "markup", Expected: "a known element", Got: shorten(t.Raw)}
	}
	e, bad := parse(t.Tag, t.Fields)
	if bad.expected != "" {
		base := t.Off + len("{{{") + len(t.Tag.String())
		if t.Fields != nil {
			base += len(":")
		}
		return nil, bad.report(t.Tag, t.Fields, base)
	}
	return e, nil
}

func parse(tag Tag, fields []byte) (Element, fault) {
	switch tag {
	case TagReset:
		return reset(fields), fault{}
	case TagModule:
		m, bad := module(fields)
		return m.element(fields), bad
	case TagMMap:
		return element(mmap(fields))
	case TagPC:
		return element(pc(fields))
	case TagBT:
		b, bad := bt(fields)
		return b.element(fields), bad
	case TagData:
		return element(data(fields))
	case TagSymbol:
		end, bad := symbol(fields)
		return Symbol{string(fields[:end])}, bad
	case TagHexDict:
		return HexDict{string(fields)}, hexdict(fields)
	default:
		colon, end, bad := dumpfile(fields)
		return dumpFile(fields, colon, end), bad
	}
}

func element[E Element](e E, bad fault) (Element, fault) { return e, bad }

// check validates fields as parse does, but returns no value and does not allocate memory.
func check(tag Tag, fields []byte) (bad fault) {
	switch tag {
	case TagBT:
		_, bad = bt(fields)
	case TagPC:
		_, bad = pc(fields)
	case TagData:
		_, bad = data(fields)
	case TagMMap:
		_, bad = mmap(fields)
	case TagModule:
		_, bad = module(fields)
	case TagSymbol:
		_, bad = symbol(fields)
	case TagHexDict:
		bad = hexdict(fields)
	case TagDumpFile:
		_, _, bad = dumpfile(fields)
	}
	return bad
}

// ParseAs parses the fields of an element of the type E. The result does not alias them.
//
//   - Reset: never fails.
//   - Module: the name may have colons, as Fuchsia's do: it ends at the last ":elf:" before a build
//     ID and the end of a field. An odd number of digits in the ID is padded on the left.
//   - MMap: only of type load. The mode has letters of rwx in any order and case; '-', 'p' and 's',
//     as in /proc/PID/maps, are ignored.
//   - PC: if the second field is neither ra nor pc, the kind is Ambiguous.
//   - BT: if the third field is neither ra nor pc, the kind is Ambiguous, and the message begins
//     there: {{{bt:1:0x…:sp 0x3f…}}}. Otherwise the message is the text after that field:
//     {{{bt:0:0x…:pc:from CFI}}}.
//   - Symbol: the name may be empty. It ends at the first colon that is not part of a "::" between
//     other characters: some emitters print demangled names, and future versions are not expected
//     to have an empty field.
//   - HexDict: any text without '}' is valid; [HexDict.Pairs] interprets it.
//   - DumpFile: both fields must exist, and may be empty.
func ParseAs[E Element](fields []byte) (e E, err *SyntaxError) {
	var bad fault
	tag := NoTag
	switch to := any(&e).(type) { // the pointer does not escape: only names are allocated
	case *Reset:
		*to = reset(fields)
	case *Module:
		var m moduleFields
		m, bad = module(fields)
		*to, tag = m.element(fields), TagModule
	case *MMap:
		*to, bad = mmap(fields)
		tag = TagMMap
	case *PC:
		*to, bad = pc(fields)
		tag = TagPC
	case *BT:
		var b btFields
		b, bad = bt(fields)
		*to, tag = b.element(fields), TagBT
	case *Data:
		*to, bad = data(fields)
		tag = TagData
	case *Symbol:
		var end int
		end, bad = symbol(fields)
		*to, tag = Symbol{string(fields[:end])}, TagSymbol
	case *HexDict:
		if bad, tag = hexdict(fields), TagHexDict; bad.expected == "" {
			*to = HexDict{string(fields)}
		}
	case *DumpFile:
		var colon, end int
		colon, end, bad = dumpfile(fields)
		*to, tag = dumpFile(fields, colon, end), TagDumpFile
	default:
		return e, &SyntaxError{Tag: "markup", Expected: "a type of this package"}
	}
	return e, bad.report(tag, fields, 0)
}

// LeadingBT parses the bt at the beginning of b. e is the element without its message, message the
// message as a part of b, and n the element's length in bytes. n is 0 if b does not begin with a
// valid bt. LeadingBT is for logs that consist mainly of lines with one backtrace element: a
// [Scanner] takes three times as long.
func LeadingBT(b []byte) (e BT, message []byte, n int) {
	const head = "{{{bt:"
	if len(b) < len(head) || string(b[:len(head)]) != head {
		return BT{}, nil, 0
	}
	end := indexByte(b, len(head), '}')
	if !hasBraces(b, end, '}') || end+3 > maxElement || index3(b[:end], len(head)) < end {
		return BT{}, nil, 0
	}
	f, bad := bt(b[len(head):end])
	if bad.expected != "" {
		return BT{}, nil, 0
	}
	return BT{Frame: f.frame, Addr: f.addr, Kind: f.kind}, b[len(head)+f.message : end], end + 3
}

func reset(f []byte) Reset {
	switch end := fieldEnd(f, 0); string(f[:end]) {
	case "begin":
		return Reset{"begin"}
	case "end":
		return Reset{"end"}
	}
	return Reset{}
}

// btFields holds the fields of a bt, and the offset of its message.
type btFields struct {
	frame, addr uint64
	kind        PCKind
	message     int
}

func (b btFields) element(f []byte) BT {
	return BT{b.frame, b.addr, b.kind, string(f[b.message:])}
}

func bt(f []byte) (btFields, fault) {
	frame, i, ok := decimal(f, 0)
	if !ok {
		return btFields{message: len(f)}, fault{0, i, "a frame number"}
	}
	i = next(f, i)
	addr, j, ok := address(f, i)
	if !ok {
		return btFields{message: len(f)}, fault{i, j, "an address"}
	}
	kind := pcKind(f, j)
	if kind != Ambiguous {
		j += len(":ra")
	}
	return btFields{frame, addr, kind, next(f, j)}, fault{}
}

func pc(f []byte) (PC, fault) {
	addr, i, ok := address(f, 0)
	if !ok {
		return PC{}, fault{0, i, "an address"}
	}
	return PC{addr, pcKind(f, i)}, fault{}
}

func data(f []byte) (Data, fault) {
	addr, i, ok := address(f, 0)
	if !ok {
		return Data{}, fault{0, i, "an address"}
	}
	return Data{addr}, fault{}
}

func mmap(f []byte) (m MMap, bad fault) {
	var i, j int
	var ok bool
	if m.Addr, j, ok = address(f, 0); !ok {
		return MMap{}, fault{0, j, "an address"}
	}
	i = next(f, j)
	if m.Size, j, ok = integer(f, i); !ok {
		return MMap{}, fault{i, j, "a size"}
	}
	i = next(f, j)
	if j = fieldEnd(f, i); string(f[i:j]) != "load" {
		return MMap{}, fault{i, j, "mmap type load"}
	}
	i = next(f, j)
	if m.Module, j, ok = integer(f, i); !ok {
		return MMap{}, fault{i, j, "a module ID"}
	}
	i = next(f, j)
	if m.Mode, j, ok = mode(f, i); !ok {
		return MMap{}, fault{i, j, "a mode made of r, w and x"}
	}
	i = next(f, j)
	if m.Rel, j, ok = address(f, i); !ok {
		return MMap{}, fault{i, j, "a module-relative address"}
	}
	return m, fault{}
}

// moduleFields holds a module's ID, and the ranges of its name and build ID in the fields.
type moduleFields struct {
	id                               uint64
	name, nameEnd, buildID, buildEnd int
}

func (m moduleFields) element(f []byte) Module {
	if m.buildEnd == 0 { // a fault
		return Module{}
	}
	// cannot fail: hexID has checked the length and the digits
	id, _ := buildid.Parse(f[m.buildID:m.buildEnd])
	return Module{m.id, string(f[m.name:m.nameEnd]), id}
}

func module(f []byte) (moduleFields, fault) {
	id, i, ok := integer(f, 0)
	if !ok {
		return moduleFields{}, fault{0, i, "a module ID"}
	}
	if i == len(f) {
		return moduleFields{}, fault{i, i, "a module name"}
	}
	const elf = ":elf:"
	name, last := i+1, -1
	for end := len(f); ; {
		at := bytes.LastIndex(f[name:end], []byte(elf))
		if at < 0 {
			break
		}
		at += name
		id0 := at + len(elf)
		if id1, ok := hexID(f, id0); ok {
			if bad := nameFault(f, name, at, "a module name"); bad.expected != "" {
				return moduleFields{}, bad
			}
			return moduleFields{id, name, at, id0, id1}, fault{}
		}
		last = max(last, id0)
		end = at
	}
	if last >= 0 {
		return moduleFields{}, fault{last, fieldEnd(f, last), "a build ID"}
	}
	i = next(f, fieldEnd(f, name))
	j := fieldEnd(f, i)
	if string(f[i:j]) == "elf" {
		return moduleFields{}, fault{j, j, "a build ID"}
	}
	return moduleFields{}, fault{i, j, "module type elf"}
}

func symbol(f []byte) (end int, bad fault) {
	if f == nil {
		return 0, fault{0, 0, "a name"}
	}
	for end = 0; end < len(f); end++ {
		if f[end] != ':' {
			continue
		}
		n := colons(f, end)
		if n != 2 || end+n == len(f) {
			break
		}
		end++
	}
	if bad = nameFault(f, 0, end, "a name"); bad.expected != "" {
		return 0, bad
	}
	return end, fault{}
}

// colons returns the length of the run of colons at i; 3 means three or more.
func colons[T []byte | string](b T, i int) int {
	n := 0
	for i+n < len(b) && b[i+n] == ':' && n < 3 {
		n++
	}
	return n
}

func hexdict(f []byte) fault {
	if f == nil {
		return fault{0, 0, "keys and values"}
	}
	if i := bytes.IndexByte(f, '}'); i >= 0 {
		return fault{i, len(f), "a closing }}}"}
	}
	return fault{}
}

// dumpfile returns the offsets of the colon after the type and of the end of the name.
func dumpfile(f []byte) (colon, end int, bad fault) {
	colon = fieldEnd(f, 0)
	if colon == len(f) {
		return 0, 0, fault{colon, colon, "a dump's name"}
	}
	if bad = nameFault(f, 0, colon, "a dump's type"); bad.expected != "" {
		return 0, 0, bad
	}
	end = fieldEnd(f, colon+1)
	if bad = nameFault(f, colon+1, end, "a dump's name"); bad.expected != "" {
		return 0, 0, bad
	}
	return colon, end, fault{}
}

func dumpFile(f []byte, colon, end int) DumpFile {
	if end == 0 { // a fault
		return DumpFile{}
	}
	return DumpFile{string(f[:colon]), string(f[colon+1 : end])}
}
