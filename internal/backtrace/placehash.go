package backtrace

import (
	"encoding/binary"

	"github.com/symfilter/symfilter/filter"
)

// AppendPlace appends bytes that identify the module of an answer and the offset in it.
func AppendPlace(dst []byte, a *filter.Resolved) []byte {
	dst = a.ID.AppendHex(AppendName(dst, a.Module))
	return binary.LittleEndian.AppendUint64(append(dst, 0), a.Offset)
}

// AppendName appends a name with its length, so different lists of names give different bytes.
func AppendName(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
}
