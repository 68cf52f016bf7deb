package lines

import (
	"bufio"
	"bytes"
	"io"
)

// An Asker reads lines of a client that may wait for an answer to each line.
type Asker struct {
	r   *bufio.Reader
	err error
}

// NewAsker returns an Asker for the lines of a client. It cuts each line to most bytes, which must
// be at least 16.
func NewAsker(in io.Reader, most int) *Asker { return &Asker{r: bufio.NewReaderSize(in, most)} }

// Next returns the next line, with its line end unless that was cut off. The slice is valid until
// the next call of a method. ok is false at the end of the input, or after an error: see Err.
func (a *Asker) Next() (line []byte, ok bool) {
	// skip the rest of a line that was cut
	for a.err == bufio.ErrBufferFull {
		_, a.err = a.r.ReadSlice('\n')
	}
	if a.err != nil {
		return nil, false
	}
	line, a.err = a.r.ReadSlice('\n')
	return line, len(line) > 0
}

// Waits reports whether Next may wait for the client. Before such a call, the caller must send its
// answers.
func (a *Asker) Waits() bool {
	if a.err == bufio.ErrBufferFull {
		return true
	}
	ahead, _ := a.r.Peek(a.r.Buffered())
	return bytes.IndexByte(ahead, '\n') < 0
}

// Err returns the read error; nil at the end of the input.
func (a *Asker) Err() error {
	if a.err == io.EOF || a.err == bufio.ErrBufferFull {
		return nil
	}
	return a.err
}
