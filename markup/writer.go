package markup

import (
	"bufio"
	"bytes"
	"io"
)

// A Sink receives a log as a stream of text and elements, from one goroutine at a time. After an
// error it must not be called again.
type Sink interface {
	// Text adds text that is never interpreted. p may have "{{{", ESC and line ends, and be split
	// anywhere. The Sink does not keep p.
	Text(p []byte) error
	Element(e Element) error
}

// A Writer is a Sink that prints the stream as markup, from which a markup filter restores exactly
// the text. If a filter would interpret a part of the text, the Writer prints that part as a
// symbol: see [Symbol.Literal]. Such a part is three or more '{', fewer of them directly before an
// element or an ESC, or an ESC before '['. A Writer is not safe for concurrent use.
type Writer struct {
	w      *bufio.Writer // keeps the first error
	braces int           // number of '{' held back, since more may follow
	escape bool          // an ESC is held back, until the next byte is known
}

// NewWriter returns a Writer to w. It buffers up to 32 KiB, so Close it or Flush it at the end.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, writeSize)}
}

// Text prints text.
func (w *Writer) Text(p []byte) error {
	brace, escape := -1, -1 // offsets of the next '{' and ESC
	for i := 0; i < len(p); {
		switch c := p[i]; {
		case c == '{':
			w.passEscape(false)
			w.braces++
			if w.braces == maxBraces {
				w.passBraces(true)
			}
			i++
		case c == esc:
			w.passBraces(true) // the ESC may be printed as an element
			w.passEscape(false)
			w.escape = true
			i++
		default:
			w.passBraces(false)
			w.passEscape(c == '[')
			if brace < i {
				brace = indexByte(p, i, '{')
			}
			if escape < i {
				escape = indexByte(p, i, esc)
			}
			end := min(brace, escape)
			w.w.Write(p[i:end])
			i = end
		}
	}
	return w.err()
}

// Element prints an element.
func (w *Writer) Element(e Element) error {
	w.passBraces(true)
	w.passEscape(false)
	w.w.Write(e.AppendMarkup(w.w.AvailableBuffer()))
	return w.err()
}

// Flush writes the buffered output, except an unfinished run of '{' or an ESC at the end of the
// text.
func (w *Writer) Flush() error { return w.w.Flush() }

// Close writes everything. It does not close the underlying writer. A closed Writer may be used
// again.
func (w *Writer) Close() error {
	w.passBraces(false)
	w.passEscape(false)
	return w.w.Flush()
}

// passBraces prints the held braces, as a symbol if a filter would interpret them.
func (w *Writer) passBraces(beforeElement bool) {
	if w.braces == 0 {
		return
	}
	run := bytes.Repeat([]byte("{"), w.braces)
	if beforeElement || w.braces >= 3 {
		w.symbol(run)
	} else {
		w.w.Write(run)
	}
	w.braces = 0
}

// passEscape prints the held ESC, as a symbol if '[' follows.
func (w *Writer) passEscape(beforeBracket bool) {
	if !w.escape {
		return
	}
	if beforeBracket {
		w.symbol([]byte{esc})
	} else {
		w.w.WriteByte(esc)
	}
	w.escape = false
}

func (w *Writer) symbol(literal []byte) {
	w.w.WriteString("{{{symbol:")
	w.w.Write(literal)
	w.w.WriteString("}}}")
}

// err returns the first error of the underlying writer.
func (w *Writer) err() error {
	_, err := w.w.Write(nil)
	return err
}

// Literal reports whether the name of the symbol is text that a filter would otherwise interpret:
// braces, or the ESC of a control sequence. A [Writer] uses such symbols. The name should be shown
// like other text.
func (s Symbol) Literal() bool {
	if s.Name == "\x1b" {
		return true
	}
	for i := range len(s.Name) {
		if s.Name[i] != '{' {
			return false
		}
	}
	return s.Name != ""
}
