package publish

import (
	"bufio"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
)

// A jsonWriter writes JSON. Commas are its own business. Errors of writing are kept by the
// bufio.Writer until its Flush.
type jsonWriter struct {
	w       *bufio.Writer
	scratch []byte
	comma   bool // a value precedes the next one in its object or array
}

// open begins an object with '{' or an array with '['.
func (j *jsonWriter) open(bracket byte) {
	j.separate()
	j.w.WriteByte(bracket)
	j.comma = false
}

// close ends an object with '}' or an array with ']'.
func (j *jsonWriter) close(bracket byte) {
	j.w.WriteByte(bracket)
	j.comma = true
}

func (j *jsonWriter) separate() {
	if j.comma {
		j.w.WriteByte(',')
	}
	j.comma = true
}

// line begins a new line, so that each result is on one.
func (j *jsonWriter) line() {
	if j.comma {
		j.w.WriteByte(',')
		j.comma = false
	}
	j.w.WriteByte('\n')
}

// key writes the name of the member whose value follows.
func (j *jsonWriter) key(name string) {
	j.separate()
	j.w.WriteByte('"')
	j.w.WriteString(name)
	j.w.WriteString(`":`)
	j.comma = false
}

// object and array begin the value of a member.
func (j *jsonWriter) object(name string) { j.key(name); j.open('{') }
func (j *jsonWriter) array(name string)  { j.key(name); j.open('[') }

// text writes a string, with bytes that are not UTF-8 replaced.
func (j *jsonWriter) text(s string) {
	j.separate()
	j.scratch, _ = escape.AppendString(j.scratch[:0], s)
	j.w.Write(j.scratch)
}

// member writes a member with a string.
func (j *jsonWriter) member(name, s string) { j.key(name); j.text(s) }

// number writes a member with a number.
func (j *jsonWriter) number(name string, n uint64) {
	j.key(name)
	j.comma = true
	j.scratch = strconv.AppendUint(j.scratch[:0], n, 10)
	j.w.Write(j.scratch)
}

// truth writes a member with a truth value.
func (j *jsonWriter) truth(name string, v bool) {
	j.key(name)
	j.comma = true
	j.w.WriteString(strconv.FormatBool(v))
}
