package dialect

import (
	"bytes"
	"encoding/json"

	"github.com/symfilter/symfilter/buildid"
)

// ABRT keeps the stacks of a crash as JSON in the file core_backtrace. satyr writes the JSON on one
// line, or with a member on each line:
//
//	{   "address": 139851234
//	,   "build_id": "3a0a920c3f1b7c55"
//	,   "build_id_offset": 4436
//	,   "function_name": "ledger_audit"
//	,   "file_name": "/opt/shop/libledger.so"
//	}
//
// The offset is the distance of a return address from the load base, or of an instruction in a
// thread's first frame. Answers are members of the same object: the file stays JSON. If the object
// has no function_name, the answers are function_name, source_file, source_line and inlined_by. If
// it has one, source_line is the line in the named function, and "inlined" has the calls inlined
// into that function.
var abrt = Dialect{
	Name: "abrt", Who: "ABRT: the file core_backtrace",
	Needs:  "the build ID in the frame",
	Sample: `{"address": 139851234, "build_id": "3a0a920c3f1b7c55", "build_id_offset": 4436, "file_name": "/opt/shop/libledger.so"}`,
}

const (
	maxABRTFrames  = 512 // frames in a line
	maxABRTMembers = 8   // members of a frame, each on its own line
)

type abrtFrame struct {
	Address  uint64
	BuildID  string  `json:"build_id"`
	Offset   *uint64 `json:"build_id_offset"`
	Function string  `json:"function_name"`
	File     string  `json:"file_name"`
	Source   string  `json:"source_file"`
}

// matchABRT matches a line with the JSON objects of frames; the "d_o" of the first build_id_offset
// is at the given offset. If a frame's members have their own lines, matchABRT adds no frame, and
// opens the window of matchABRTFile.
func matchABRT(r *Reader, l *Line, at int) bool {
	const before, after = `"build_i`, `ffset"`
	b := l.Text
	if !endsWith(b, at, before) || !hasAt(b, at+len("d_o"), after) {
		return false
	}
	if open := bytes.LastIndexByte(b[:at], '{'); open < 0 || bytes.IndexByte(b[open:], '}') < 0 {
		r.open(windowABRT, r.number) // the other members have their own lines
		return true
	}
	number := -1
	for range maxABRTFrames {
		open := bytes.LastIndexByte(b[:at], '{')
		close := bytes.IndexByte(b[at:], '}')
		if open < 0 || close < 0 {
			break
		}
		close += at
		number++
		if begins := bytes.TrimRight(b[:open], " \t"); bytes.HasSuffix(begins, []byte("[")) {
			number = 0
		}
		var frame abrtFrame
		if json.Unmarshal(b[open:close+1], &frame) == nil {
			r.modules.abrtFrame(l, &frame, number, open, len(bytes.TrimRight(b[:close], " \t")))
		}
		next := bytes.Index(b[close:], []byte(before+"d_o"+after))
		if next < 0 {
			break
		}
		at = close + next + len(before)
	}
	return len(l.Frames) > 0
}

// matchABRTFile matches the line with file_name, the last member of a frame whose members have
// their own lines.
func matchABRTFile(r *Reader, l *Line, _ int) bool {
	b := l.Text
	from := blanksAfter(b, 0)
	if !hasAt(b, from, ",") && !hasAt(b, from, `"`) || !bytes.Contains(b[from:], []byte(`"file_name"`)) || r.Past == nil {
		return false
	}
	past := r.lastLines(maxABRTMembers)
	open := bytes.LastIndexByte(past, '{')
	if open < 0 || len(past)-open > maxLine {
		return false
	}
	end := len(bytes.TrimRight(b, " \t,"))
	if bytes.IndexByte(past[open:], '}') >= 0 || bytes.IndexByte(b[:end], '}') >= 0 {
		return false
	}
	object := append(append(bytes.Clone(past[open:]), b[:end]...), '}')
	var frame abrtFrame
	if json.Unmarshal(object, &frame) != nil {
		return false
	}
	number := -1
	if begins := bytes.TrimRight(past[:open], " \t\r\n"); bytes.HasSuffix(begins, []byte("[")) {
		number = 0
	}
	return r.modules.abrtFrame(l, &frame, number, from, end)
}

// abrtFrame adds the frame of a JSON object to l. An answer adds members to the object at offset
// end.
func (c *modules) abrtFrame(l *Line, frame *abrtFrame, number, start, end int) bool {
	id, err := buildid.Parse(bytes.ToLower([]byte(frame.BuildID)))
	if err != nil || frame.Offset == nil || frame.Source != "" || len(frame.File) > maxPath {
		return false
	}
	f := l.frame()
	f.Module, f.ID, f.Kind, f.Value, f.Addr = c.name([]byte(frame.File)), id, BaseOffset, *frame.Offset, frame.Address
	f.Number, f.Start, f.Inline, f.Call = number, start, Innermost, Return
	if number == 0 {
		f.Call = Exact
	}
	place := Span{end, end}
	if frame.Function == "" {
		l.edit(f, Edit{place, `, "function_name": `, JSONFunc, ""})
	} else {
		f.Symbol = Symbol{Name: frame.Function, Inside: true}
	}
	l.edit(f, Edit{place, `, `, JSONSource, ""})
	return true
}
