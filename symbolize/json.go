package symbolize

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// A frameJSON is a Frame with the member names of --output=json: see log.schema.json of package
// filter.
type frameJSON struct {
	Function string  `json:"function"`
	Linkage  string  `json:"linkage,omitempty"` // empty if it equals Function
	File     string  `json:"file,omitempty"`
	Line     *uint32 `json:"line,omitempty"` // line and column only with a file
	Column   *uint32 `json:"column,omitempty"`
	Offset   string  `json:"offset,omitempty"` // only without a file
	Inlined  bool    `json:"inlined"`
}

// MarshalJSON returns f as --output=json prints it: the function, the file with line and column,
// and whether the call is inlined. Without a file it has the offset from the start of the symbol,
// in hex.
func (f Frame) MarshalJSON() ([]byte, error) {
	j := frameJSON{Function: f.Func, File: f.File, Inlined: f.Inlined}
	if f.Linkage != f.Func {
		j.Linkage = f.Linkage
	}
	if f.File != "" {
		j.Line, j.Column = &f.Line, &f.Column
	} else {
		j.Offset = hexText(f.Offset)
	}
	return json.Marshal(j)
}

// UnmarshalJSON sets f from the output of MarshalJSON.
func (f *Frame) UnmarshalJSON(data []byte) error {
	var j frameJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	offset, err := parseHex(j.Offset)
	if err != nil {
		return err
	}
	*f = Frame{Func: j.Function, Linkage: j.Linkage, File: j.File, Offset: offset, Inlined: j.Inlined}
	if j.Linkage == "" {
		f.Linkage = j.Function
	}
	if j.Line != nil {
		f.Line, f.HasLine = *j.Line, true
	}
	if j.Column != nil {
		f.Column = *j.Column
	}
	return nil
}

// A variableJSON is a Variable with the member names of --output=json.
type variableJSON struct {
	Name    string `json:"name"`
	Linkage string `json:"linkage,omitempty"`
	Member  string `json:"member,omitempty"`
	Offset  string `json:"offset"`
	Size    string `json:"size,omitempty"` // empty if unknown
}

// MarshalJSON returns v as --output=json prints it: name, member, and offset and size in hex.
func (v Variable) MarshalJSON() ([]byte, error) {
	j := variableJSON{Name: v.Name, Member: v.Member, Offset: hexText(v.Offset)}
	if v.Linkage != v.Name {
		j.Linkage = v.Linkage
	}
	if v.Size != 0 {
		j.Size = hexText(v.Size)
	}
	return json.Marshal(j)
}

// UnmarshalJSON sets v from the output of MarshalJSON.
func (v *Variable) UnmarshalJSON(data []byte) error {
	var j variableJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	offset, err := parseHex(j.Offset)
	if err != nil {
		return err
	}
	size, err := parseHex(j.Size)
	if err != nil {
		return err
	}
	*v = Variable{Name: j.Name, Linkage: j.Linkage, Member: j.Member, Offset: offset, Size: size}
	if j.Linkage == "" {
		v.Linkage = j.Name
	}
	return nil
}

// hexText returns n in hex, for a JSON string: many JSON readers lose bits of numbers beyond 2^53.
func hexText(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// parseHex reads the output of hexText; an empty string is 0.
func parseHex(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a hexadecimal number such as 0x1f", s)
	}
	return n, nil
}
