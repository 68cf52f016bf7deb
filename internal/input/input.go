// Package input recognises the format of an input, and passes the input to the translator for that
// format.
//
// The first lines of an input identify its format. An unrecognised input is a log, with or without
// markup. A compressed input (gzip, zstd, xz, bzip2) is unpacked. UTF-16 with a byte order mark is
// converted to UTF-8.
//
// Logs of containers (CRI, Docker), lines of JSON, and journals have an envelope around each text.
// Only the text is filtered. The output has the envelope again, so every record stays valid.
package input

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/symfilter/symfilter/internal/unpack"
)

// A Format is the format of an input.
type Format uint8

// The formats. Auto means that the input decides.
const (
	Auto      Format = iota
	Markup           // lines of a log, with or without markup
	CRI              // container lines in files of Kubernetes' runtimes
	Docker           // container lines in files of Docker's driver json-file
	JSON             // an object on each line, with log text in some of its strings
	Journal          // journald entries in the export format
	Valgrind         // XML from Valgrind's tools
	Callgrind        // profiles in the format of Callgrind
	RTrace           // reports of sp-rtrace
)

// Names returns the names of the formats, in their order.
func Names() []string {
	return []string{"auto", "markup", "cri", "docker", "json", "journal", "valgrind", "callgrind", "rtrace"}
}

func (f Format) String() string { return Names()[f] }

// Plain is like Unpacked, but its reader also converts UTF-16 with a byte order mark to UTF-8.
func Plain(r io.Reader, memory *unpack.Memory) (plain io.Reader, done func(), err error) {
	z, done, err := Unpacked(r, memory)
	if err != nil {
		return nil, nil, err
	}
	b, ok := z.(*bufio.Reader)
	if !ok {
		b = bufio.NewReader(z)
	}
	return recoded(b), done, nil
}

// Unpacked returns a reader of r. If r begins like a compressed file, the reader unpacks it, and
// then reads the bytes after the compressed data. It fails at damaged data. The memory for
// unpacking is held until done is called.
func Unpacked(r io.Reader, memory *unpack.Memory) (contents io.Reader, done func(), err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, _ := b.Peek(headSize)
	f, _ := unpack.FormatOf(head)
	if f == nil {
		return b, func() {}, nil
	}
	z, err := f.Open(b, memory)
	if err != nil {
		return nil, nil, fmt.Errorf("unpack: %w", err)
	}
	return z, func() { z.Close() }, nil
}

// Translators make a writer for an input of each format.
type Translators struct {
	Markup    func() io.WriteCloser
	Container func(Format) io.WriteCloser // CRI, Docker, JSON and Journal
	Valgrind  func() io.WriteCloser
	Callgrind func() io.WriteCloser
	RTrace    func() io.WriteCloser

	// Fields are the members that identify lines of JSON. nil: DefaultFields.
	Fields []string

	// Encoded is called once for an input that is not in UTF-8: by a method of the Writer, or by
	// the goroutine that unpacks. It may be nil.
	Encoded func(Encoding)

	// Text is called with the text before translation, unpacked and in UTF-8: by a method of the
	// Writer, or by the goroutine that unpacks. It must not keep or modify the bytes. It may be
	// nil.
	Text func([]byte)

	// Damaged, if not nil, is called when a compressed input is found to be damaged, by the
	// goroutine that unpacks it. Close returns the same error.
	Damaged func(*UnpackError)

	Memory *unpack.Memory // for compressed inputs; nil: unpack.DefaultMemory for each

	// Unpacked means that the caller has unpacked the input. Contents that look compressed are then
	// not unpacked again.
	Unpacked bool
}

// A Writer passes its input to the translator for the input's format. While the format is unknown,
// it keeps less than 4 KiB of input. One whole line may decide the format. After 4 KiB, or a call
// of Decide or Close, the format is always decided. A Writer is not safe for concurrent use.
type Writer struct {
	t       Translators
	format  Format
	head    []byte         // input of unknown format so far; shorter than headSize
	inside  bool           // the input was unpacked once, and is not unpacked again
	begun   bool           // compression and encoding of the input are known
	packed  *unpacker      // nil: not packed
	decoder *utf16Decoder  // nil: not UTF-16
	zeros   zeroWatch      // detects UTF-16 without a byte order mark
	dst     io.WriteCloser // nil until the format is known
	// set at the beginning of a log whose format was recognised; nil afterwards
	watch *reportWatch

	// context of an earlier input's processes, until the format is known: see Remember
	earlier []byte
}

// New returns a Writer for an input of format f. If f is Auto, the Writer recognises the format.
func New(f Format, t Translators) *Writer {
	return &Writer{t: t, format: f, inside: t.Unpacked}
}

// Write translates p, or keeps it while the format is unknown. A packed input is unpacked in a
// goroutine, for which Close waits.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	if !w.begun {
		if len(w.head) > 0 {
			p = append(w.head, p...)
		}
		if !w.begin(p, more) {
			w.head = append(w.head[:0], p...)
			return n, nil
		}
		w.head = nil
	}
	if err := w.take(p); err != nil {
		return 0, err
	}
	return n, nil
}

// begin determines the encoding of an input that begins with head, and whether it is packed. It
// returns false if more bytes are needed.
func (w *Writer) begin(head []byte, until extent) bool {
	var f *unpack.Format
	undecided := false
	if !w.inside {
		f, undecided = unpack.FormatOf(head)
	}
	e, doubt := encodingOf(head, until)
	if until == more && (undecided || doubt) || until == silent && onlyMark(head) {
		return false
	}
	w.begun = true
	switch {
	case f != nil:
		w.packed = newUnpacker(f, &Writer{t: w.t, format: w.format, inside: true})
	case !e.Read():
		w.tell(e)
	case e != UTF8:
		w.decoder = &utf16Decoder{big: e == UTF16BE}
		w.tell(e)
	}
	return true
}

func (w *Writer) tell(e Encoding) {
	if e != UTF8 && w.t.Encoded != nil {
		w.t.Encoded(e)
	}
}

// take passes bytes of an input that has begun to the unpacker or the translator. While the format
// is unknown, it keeps them.
func (w *Writer) take(p []byte) error {
	switch {
	case w.packed != nil:
		_, err := w.packed.Write(p)
		return err
	case w.decoder != nil:
		if p = w.decoder.decode(p); w.decoder.bytes {
			w.decoder = nil
		}
	default:
		w.tell(w.zeros.look(p))
	}
	return w.text(p)
}

func (w *Writer) text(p []byte) error {
	if w.t.Text != nil {
		w.t.Text(p)
	}
	return w.translate(p)
}

// translate passes text to the translator. While the format is unknown, it keeps the text.
func (w *Writer) translate(p []byte) error {
	if w.dst == nil {
		head := p[:min(len(p), headSize-len(w.head))]
		if len(w.head) > 0 {
			head = append(w.head, head...)
		}
		if !w.settle(head, more) {
			w.head = append(w.head[:0], head...)
			return nil
		}
		if len(w.head) > 0 {
			p = append(w.head, p...)
			w.head = nil
		}
	}
	return w.pass(p)
}

// settle selects the translator for a text that begins with head, and reports whether it could.
func (w *Writer) settle(head []byte, until extent) bool {
	if until == more && len(head) >= headSize {
		until = full
	}
	recognised := w.format == Auto
	if recognised {
		w.format = recognise(head, until, w.t.Fields)
	}
	if w.format == Auto && until == more {
		return false
	}
	w.open()
	if recognised && w.format == Markup {
		w.watch = &reportWatch{}
	}
	if e, ok := w.dst.(*Envelope); ok && w.format == Docker {
		e.doubt = recognised && !bytes.Contains(head, []byte(wholeDocker))
	}
	return true
}

// release gives the translator the head, which does not begin another format.
func (w *Writer) release() (err error) {
	head := w.head
	w.head = nil
	switch {
	case len(head) == 0:
	case w.watch != nil:
		return w.passed(head)
	default:
		_, err = w.dst.Write(head)
	}
	return err
}

// decide selects the format by the kept bytes, and translates them.
func (w *Writer) decide(until extent) error {
	if !w.begun {
		head := w.head
		if !w.begin(head, until) {
			return nil
		}
		w.head = nil
		if err := w.take(head); err != nil {
			return err
		}
	}
	if w.packed != nil {
		return nil
	}
	if w.dst == nil {
		w.settle(w.head, until)
	}
	return w.release()
}

// Pause calls the function do while no goroutine unpacks. do may then use the Filter of the Writer.
func (w *Writer) Pause(do func()) {
	if w.packed == nil {
		do()
		return
	}
	w.packed.with(func(*Writer) error { // cannot fail
		do()
		return nil
	})
}

// Undecided reports whether the Writer keeps bytes of an unknown format, and Decide would have an
// effect.
func (w *Writer) Undecided() bool {
	if w.packed != nil {
		return w.packed.pending((*Writer).Undecided)
	}
	return len(w.head) > 0 && (w.begun || !onlyMark(w.head))
}

// Decide selects the format by the bytes written so far, and translates them. Call it if an input
// pauses: the command does so after 100 ms of silence. An unrecognised format is Markup. An
// unfinished line or entry of an Envelope is then passed on unchanged.
func (w *Writer) Decide() error {
	if w.packed != nil {
		return w.packed.with((*Writer).Decide)
	}
	if !w.Undecided() {
		return nil
	}
	if err := w.decide(silent); err != nil {
		return err
	}
	if e, ok := w.dst.(*Envelope); ok {
		return e.passUnfinished()
	}
	return nil
}

// Unfinished reports whether Flush may have an effect.
func (w *Writer) Unfinished() bool {
	if w.packed != nil {
		return w.packed.pending((*Writer).Unfinished)
	}
	if f, ok := w.inner().(interface{ Unfinished() bool }); ok && f.Unfinished() {
		return true
	}
	return w.Undecided() || w.decoder != nil && w.decoder.unfinished()
}

// Flush calls Decide. It also passes on an unfinished last line of markup, such as a prompt, and
// the held lines of a raw backtrace.
func (w *Writer) Flush() error {
	if w.packed != nil {
		return w.packed.with((*Writer).Flush)
	}
	if w.decoder != nil {
		if err := w.text(w.decoder.flush()); err != nil {
			return err
		}
	}
	if err := w.Decide(); err != nil {
		return err
	}
	if f, ok := w.dst.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return nil
}

// Release calls Flush, and prints the module line that is still collecting its maps. All complete
// lines are then written. Release does not wait for bytes that are still being unpacked.
func (w *Writer) Release() error {
	if w.packed != nil {
		return w.packed.with((*Writer).Release)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r, ok := w.inner().(interface{ Release() error }); ok {
		return r.Release()
	}
	return nil
}

func (w *Writer) open() {
	switch w.format {
	case CRI, Docker, JSON, Journal:
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
	w.remember()
}

// Close translates the kept bytes, and closes the translator.
func (w *Writer) Close() error {
	var err error
	if w.decoder != nil {
		err = w.text(w.decoder.end())
	}
	err = cmp.Or(err, w.decide(ended))
	if w.packed != nil {
		return cmp.Or(w.packed.Close(), err) // an error of unpacking takes precedence
	}
	return cmp.Or(err, w.dst.Close())
}

// Passes reports whether the format of the input is decided, and the Writer passes on all further
// bytes unchanged to the translator.
func (w *Writer) Passes() bool { return w.dst != nil && w.decoder == nil && w.watch == nil }

// Packed returns the compression of the input: gzip, zstd, xz or bzip2. It returns "" for other
// inputs.
func (w *Writer) Packed() string {
	if w.packed == nil || w.packed.isPlain() {
		return ""
	}
	return w.packed.format.String()
}

// Format returns the format. It returns Auto for an unknown format, and for a packed input.
func (w *Writer) Format() Format {
	if w.packed != nil {
		return Auto
	}
	return w.format
}
