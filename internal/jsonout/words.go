package jsonout

import (
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// BuildID appends "build_id", unless id is zero.
func (b *Buffer) BuildID(id buildid.ID) {
	if !id.IsZero() {
		*b = append(id.AppendHex(append(named(*b, "build_id"), '"')), '"')
	}
}

// Function appends "function", and "linkage" if the linker has another name for the function.
func (b *Buffer) Function(name, linkage string) {
	b.String("function", name)
	if linkage != name {
		b.Optional("linkage", linkage)
	}
}

// Frames appends "frames", an array with the innermost frame first.
func (b *Buffer) Frames(frames []symbolize.Frame) {
	b.Array("frames")
	for i := range frames {
		b.Frame(&frames[i])
	}
	b.EndArray()
}

// Frame appends f to an array, as an object with its function, file, line and column. If f has no
// file, the object has the offset in the function instead.
func (b *Buffer) Frame(f *symbolize.Frame) {
	b.Item()
	b.Function(f.Func, f.Linkage)
	if f.File != "" {
		b.String("file", f.File)
		b.Uint("line", uint64(f.Line))
		b.Uint("column", uint64(f.Column))
	} else {
		b.Hex("offset", f.Offset)
	}
	b.Bool("inlined", f.Inlined)
	b.EndObject()
}

// Variable appends the names, the member and the offset of v, but not its size.
func (b *Buffer) Variable(v *symbolize.Variable) {
	b.String("name", v.Name)
	if v.Linkage != v.Name {
		b.String("linkage", v.Linkage)
	}
	b.Optional("member", v.Member)
	b.Hex("offset", v.Offset)
}

// Reason appends "reason" with the text of err. If err is nil, the reason is that no symbol covers
// the address.
func (b *Buffer) Reason(err error) {
	reason := "no symbol covers the address"
	if err != nil {
		reason = err.Error()
	}
	b.String("reason", reason)
}
