// Package input recognises the format of an input, and gives the input to what
// understands that: markup as it is, a foreign format to its translator.
//
// A format is recognised by what it must begin with; in doubt, it is markup. An
// input packed with gzip is unpacked.
package input

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// A Format is what an input is written in.
type Format uint8

// The formats. Auto is none: it is recognised which of the others an input has.
const (
	Auto      Format = iota
	Markup           // lines of a log, with or without markup
	CRI              // such lines as Kubernetes' runtimes keep those of a container
	Docker           // such lines as Docker keeps those of a container: json-file
	Valgrind         // XML of Valgrind's tools
	Callgrind        // profiles of Callgrind, and of what else writes its format
	RTrace           // reports of sp-rtrace
)

// Names are the formats' names, in their order.
func Names() []string {
	return []string{"auto", "markup", "cri", "docker", "valgrind", "callgrind", "rtrace"}
}

func (f Format) String() string { return Names()[f] }

// gzipMagic is what files of gzip begin with (RFC 1952).
const gzipMagic = "\x1f\x8b\x08"

// Plain returns a reader of what r holds: of what is in it, if it is packed with
// gzip.
func Plain(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	if head, _ := b.Peek(len(gzipMagic)); string(head) != gzipMagic {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return z, nil
}

// Translators make what takes the inputs of each format.
type Translators struct {
	Markup    func() io.WriteCloser
	Container func(Format) io.WriteCloser // CRI and Docker
	Valgrind  func() io.WriteCloser
	Callgrind func() io.WriteCloser
	RTrace    func() io.WriteCloser
}

// A Writer gives what is written to it to the translator for its format.
type Writer struct {
	t      Translators
	format Format
	head   []byte         // until the format is known
	begun  bool           // the first bytes have been looked at
	dst    io.WriteCloser // nil: the format is not known yet
	packed *unpacker
}

// New returns a Writer for an input of this format, which it recognises if that
// is Auto.
func New(f Format, t Translators) *Writer { return &Writer{t: t, format: f} }

// Write translates p, or keeps it until it is enough to say what it is: 4 KiB at
// most. An input that is packed is unpacked in a goroutine that Close waits
// for.
func (w *Writer) Write(p []byte) (int, error) {
	switch {
	case w.packed != nil:
		return w.packed.Write(p)
	case w.dst != nil:
		return w.dst.Write(p)
	}
	w.head = append(w.head, p...)
	if err := w.decide(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// decide looks at the head, which is all there is if it is final.
func (w *Writer) decide(final bool) error {
	if !w.begun {
		if n := min(len(w.head), len(gzipMagic)); n < len(gzipMagic) && n > 0 && string(w.head) == gzipMagic[:n] && !final {
			return nil
		}
		w.begun = true
		if bytes.HasPrefix(w.head, []byte(gzipMagic)) {
			w.packed = unpack(&Writer{t: w.t, format: w.format, begun: true})
			_, err := w.packed.Write(w.head)
			w.head = nil
			return err
		}
	}
	if w.format == Auto {
		w.format = recognise(w.head[:min(len(w.head), headSize)], final)
	}
	if w.format == Auto && !final {
		return nil
	}
	w.open()
	head := w.head
	w.head = nil
	if len(head) == 0 {
		return nil
	}
	_, err := w.dst.Write(head)
	return err
}

// open makes the translator for the format.
func (w *Writer) open() {
	switch w.format {
	case CRI, Docker:
		w.dst = w.t.Container(w.format)
	case Valgrind:
		w.dst = w.t.Valgrind()
	case Callgrind:
		w.dst = w.t.Callgrind()
	case RTrace:
		w.dst = w.t.RTrace()
	default:
		w.format = Markup
		w.dst = w.t.Markup()
	}
}

// Close translates what was kept, and closes the translator.
func (w *Writer) Close() error {
	if w.packed != nil {
		return w.packed.Close()
	}
	if w.dst == nil {
		if err := w.decide(true); err != nil {
			if w.dst != nil {
				w.dst.Close()
			}
			return err
		}
	}
	return w.dst.Close()
}

// Format returns the format, or Auto while it is not known. For an input that
// is packed it is not known before Close.
func (w *Writer) Format() Format {
	if w.packed != nil {
		return Auto
	}
	return w.format
}

// An unpacker unpacks what is written to it.
type unpacker struct {
	*io.PipeWriter
	done chan error
}

// unpack starts a goroutine that writes to w what is unpacked; Close waits for
// it.
func unpack(w *Writer) *unpacker {
	r, in := io.Pipe()
	u := &unpacker{in, make(chan error, 1)}
	go func() {
		z, err := gzip.NewReader(r)
		if err == nil {
			_, err = io.Copy(w, z) // of an input that is cut, what is there
		}
		if e := w.Close(); err == nil {
			err = e
		}
		r.CloseWithError(err)
		u.done <- err
	}()
	return u
}

// Close ends the input.
func (u *unpacker) Close() error {
	u.PipeWriter.Close()
	return <-u.done
}
