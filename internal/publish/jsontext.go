package publish

import (
	"io"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
)

// A jsonWriter writes JSON, and inserts the commas.
type jsonWriter struct {
	w     io.Writer
	buf   []byte
	comma bool  // the next value needs a comma before it
	err   error // first error of w
}

// flush writes the buffer, and returns the first error of all writes.
func (j *jsonWriter) flush() error {
	if j.err == nil && len(j.buf) > 0 {
		_, j.err = j.w.Write(j.buf)
	}
	j.buf = j.buf[:0]
	return j.err
}

// raw writes a byte of punctuation or layout.
func (j *jsonWriter) raw(c byte) { j.buf = append(j.buf, c) }

// open begins an object with '{' or an array with '['.
func (j *jsonWriter) open(bracket byte) {
	if len(j.buf) > bufferSize {
		j.flush()
	}
	j.separate()
	j.buf = append(j.buf, bracket)
	j.comma = false
}

// close ends an object with '}' or an array with ']'.
func (j *jsonWriter) close(bracket byte) {
	j.buf = append(j.buf, bracket)
	j.comma = true
}

func (j *jsonWriter) separate() {
	if j.comma {
		j.buf = append(j.buf, ',')
	}
	j.comma = true
}

// line begins a new line for the next value, after a comma if needed.
func (j *jsonWriter) line() {
	if j.comma {
		j.buf = append(j.buf, ',')
		j.comma = false
	}
	j.buf = append(j.buf, '\n')
}

// key writes the name of the next member.
func (j *jsonWriter) key(name string) {
	j.separate()
	j.buf = append(append(append(j.buf, '"'), name...), `":`...)
	j.comma = false
}

func (j *jsonWriter) object(name string) { j.key(name); j.open('{') }
func (j *jsonWriter) array(name string)  { j.key(name); j.open('[') }

// text writes a string. It replaces bytes that are not UTF-8.
func (j *jsonWriter) text(s string) {
	j.separate()
	j.buf, _ = escape.AppendString(j.buf, s)
}

func (j *jsonWriter) member(name, s string) { j.key(name); j.text(s) }

func (j *jsonWriter) number(name string, n uint64) {
	j.key(name)
	j.comma = true
	j.buf = strconv.AppendUint(j.buf, n, 10)
}

func (j *jsonWriter) truth(name string, v bool) {
	j.key(name)
	j.comma = true
	j.buf = strconv.AppendBool(j.buf, v)
}
