package escape

import (
	"bytes"
	"io"
)

// A Writer writes text to a terminal. It makes control characters visible, as AppendText does,
// except TAB and line ends. It may hold back up to three bytes, so Close it. It is not safe for
// concurrent use.
type Writer struct {
	w    io.Writer
	held []byte // the beginning of a character, or a carriage return
	out  []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes p. It holds back an incomplete character or a carriage return at the end of p.
func (w *Writer) Write(p []byte) (int, error) {
	text := p
	if len(w.held) > 0 {
		text = append(w.held, p...)
	}
	cut := len(text) - unfinished(text)
	err := w.pass(text[:cut])
	w.held = append([]byte(nil), text[cut:]...)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes the bytes that are held back. It does not close the underlying writer.
func (w *Writer) Close() error {
	held := w.held
	w.held = nil
	return w.pass(held)
}

func (w *Writer) pass(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	w.out = w.out[:0]
	for line := range bytes.Lines(text) {
		end := len(line)
		if bytes.HasSuffix(line, []byte("\r\n")) {
			end -= 2
		}
		w.out = append(AppendText(w.out, line[:end], "\t\n"), line[end:]...)
	}
	_, err := w.w.Write(w.out)
	return err
}

// unfinished returns the number of bytes at the end of text that later bytes may complete: the
// beginning of a character, or a carriage return, which a line feed may follow.
func unfinished(text []byte) int {
	if n := len(text); n > 0 && text[n-1] == '\r' {
		return 1
	}
	return CutRune(text)
}
