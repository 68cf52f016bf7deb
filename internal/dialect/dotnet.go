package dialect

import "bytes"

// A .NET program that was compiled ahead of time (NativeAOT) prints frames in this form if it has
// no metadata for stack traces. The name is the file's, without its last extension:
//
//	at inventory!<BaseAddress>+0xa532c
var dotnet = Dialect{
	Name: "dotnet", Who: ".NET: programs compiled ahead of time (NativeAOT)",
	Needs:  "--image NAME=FILE",
	Sample: "   at inventory!<BaseAddress>+0xa532c",
}

// matchDotNet matches a frame whose distance from the base is at the given offset.
func matchDotNet(r *Reader, l *Line, at int) bool {
	const mark, word = "!<BaseAddress>+", "at "
	b := l.Text
	offset, end, ok := prefixedHex(b, at)
	to := at - len(mark)
	if !ok || !endsWith(b, at, mark) || !onlyBlanks(b, end) {
		return false
	}
	start := bytes.LastIndex(b[:to], []byte(word))
	if start < 0 || !standsFree(b, start) || start+len(word) == to || to-start > maxPath {
		return false
	}
	f := l.frame()
	f.Start, f.Module = start, r.modules.name(b[start+len(word):to])
	f.Kind, f.Value, f.Call = BaseOffset, offset, Either
	l.edit(f, Edit{Span{start + len(word), end}, "", Name, ""})
	l.edit(f, Edit{Span{end, end}, " in ", AtLine, ""})
	return true
}
