package lines

import (
	"bufio"
	"bytes"
	"io"
)

// An Asker reads the lines of a client that may wait for the answer to each of them.
type Asker struct {
	r   *bufio.Reader
	err error
}

// NewAsker returns an Asker for in. Of a line it keeps at most most bytes, at least 16.
func NewAsker(in io.Reader, most int) *Asker { return &Asker{r: bufio.NewReaderSize(in, most)} }

// Next returns the next line, with its line end if that is not beyond the bound. The slice is valid
// until the next call of a method. ok is false at the end, or if the input cannot be read: see Err.
func (a *Asker) Next() (line []byte, ok bool) {
	// The rest of the previous line.
	for a.err == bufio.ErrBufferFull {
		_, a.err = a.r.ReadSlice('\n')
	}
	if a.err != nil {
		return nil, false
	}
	line, a.err = a.r.ReadSlice('\n')
	return line, len(line) > 0
}

// Waits reports whether Next may have to wait for the client, so that the answers should be sent
// first.
func (a *Asker) Waits() bool {
	if a.err == bufio.ErrBufferFull {
		return true
	}
	ahead, _ := a.r.Peek(a.r.Buffered())
	return bytes.IndexByte(ahead, '\n') < 0
}

// Err returns why the input could not be read to its end; nil if it was.
func (a *Asker) Err() error {
	if a.err == io.EOF || a.err == bufio.ErrBufferFull {
		return nil
	}
	return a.err
}
