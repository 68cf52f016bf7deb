package profile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
)

// Limits of an input. A profile of 100,000 stacks takes about 20 MiB, or a tenth of that if
// compressed.
const (
	maxNested = 2       // number of times that a profile may be compressed by gzip
	headSize  = 4 << 10 // bytes that are enough to recognize the format
)

// MemoryShare limits the unpacked bytes of an input to Options.Memory / MemoryShare.
const MemoryShare = 4

// An Output is a form in which a Profile is printed.
type Output int

// The forms of a profile.
const (
	Text       Output = iota // a table of functions, and the largest stacks
	Pprof                    // protocol buffers, compressed by gzip
	Folded                   // a line for each stack
	Speedscope               // JSON of speedscope, with all types of values
	Own                      // as Valgrind's tool prints the file; Pprof for other formats
)

// Options are the options of Read. The zero value resolves no address.
type Options struct {
	report.Options

	// Places makes the Places for a file of DHAT or Massif. program is the program's name on
	// the command line, or "". If Places is nil, no frame of such a file gets a name.
	Places func(program string) Places

	// PprofOnly refuses all formats but pprof's, with ErrNotPprof.
	PprofOnly bool
}

// View selects what Text and Folded print of a profile.
type View struct {
	Label string // name of the input, for the heading of Text; may be empty

	// Show is the name of a sample type, such as inuse_space. If Show is empty, the profile's
	// default type is shown, or else the last type, as in pprof viewers.
	Show string

	Inclusive bool // orders the table of Text by inclusive values
}

// Read wraps these errors if an input cannot be read. Write wraps them if an input has no stacks or
// is too large.
var (
	ErrUnknown  = errors.New("not a profile of pprof, gperftools, jemalloc, DHAT or Massif")
	ErrTooLarge = errors.New("too large for the memory limit; raise the limit with --max-memory")
	ErrCut      = errors.New("the profile is cut off")

	// Read wraps ErrNotPprof if Options.PprofOnly is set and the profile has another format. The
	// message ends with that format, if symfilter recognizes it.
	ErrNotPprof = errors.New("not a profile of pprof")
)

// A ShowError reports that the profile has no sample type with the name in View.Show.
type ShowError struct {
	Show  string
	Types []string // sample types of the profile
}

func (e *ShowError) Error() string {
	return fmt.Sprintf("the profile has no values of type %q; its types are %s", e.Show, listed(e.Types))
}

const pprofName = "pprof profile"

// A format is a kind of profile.
type format struct {
	name   string                 // name in messages
	begins func(head []byte) bool // reports whether head begins a profile of this format
	read   func(data []byte, r *resolver) (document, error)
}

// formats returns the formats in the order in which Read tries them. traceOf recognizes files
// of DHAT and Massif earlier. pprof is last, since its profiles begin without a mark.
func formats() []format {
	return []format{
		{"heap profile of jemalloc", isJemalloc, readJemalloc},
		{"heap profile of gperftools", isHeap, readHeap},
		{"CPU profile of gperftools", isCPU, readCPU},
		{pprofName, isPprof, readPprof},
	}
}

// A document is a profile of one format. resolve is called before stacks.
type document interface {
	// resolve looks up the names of all addresses.
	resolve(r *resolver) error

	// stacks returns the profile with names, which the caller must not change. It fails if the
	// document has no stacks, or if its file cannot be read again.
	stacks() (*stacks.Profile, error)
}

// A Profile is a profile with names. Its methods may be called from one goroutine at a time.
type Profile struct {
	doc  document
	name string // name of its format
	m    *memory
}

// Read reads a profile from in to its end, and names its addresses. If the input is not a
// profile, or cannot be read, the error wraps ErrUnknown, ErrTooLarge or ErrCut, or describes
// the fault. Other errors come from in. Write reads a regular file of DHAT or Massif again:
// keep it open. Such a file may have any size. The caller closes the Profile.
func Read(in io.Reader, o Options) (*Profile, error) {
	p := &Profile{m: &memory{share: report.NewShare(o.Memory)}}
	if err := p.read(in, &o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close returns the memory of the profile to its budget.
func (p *Profile) Close() { p.m.share.Release() }

func (p *Profile) read(in io.Reader, o *Options) error {
	if f := regularTrace(in); f != nil && !o.PprofOnly {
		return p.trace(f, o)
	}
	b := bufio.NewReaderSize(in, headSize)
	begin, _ := b.Peek(headSize) // the next read returns its error, too
	isTrace := IsTrace(begin)
	data, err := p.m.readAll(b)
	if isTrace && errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("%w, or name the file instead of piping it: a named file may have any size", err)
	}
	if err != nil {
		return err
	}
	if data, err = p.m.unpack(data); err != nil {
		return err
	}
	if len(data) == 0 {
		return fmt.Errorf("%w: the file is empty", ErrUnknown)
	}
	head := data[:min(len(data), headSize)]
	if f := traceOf(head); f != nil && o.PprofOnly {
		return fmt.Errorf("%w: a %s", ErrNotPprof, f.name)
	} else if f != nil {
		return p.trace(&traceFile{ReadSeeker: bytes.NewReader(data), head: head}, o)
	}
	for _, f := range formats() {
		if !f.begins(head) {
			continue
		}
		if o.PprofOnly && f.name != pprofName {
			return fmt.Errorf("%w: a %s", ErrNotPprof, f.name)
		}
		r := newResolver(o, p.m)
		defer r.close()
		p.name = f.name
		if p.doc, err = f.read(data, r); err == nil {
			err = p.doc.resolve(r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		r.missing.Pass(&o.Options)
		return nil
	}
	return ErrUnknown
}

func (p *Profile) trace(f *traceFile, o *Options) (err error) {
	format := traceOf(f.head)
	p.name = format.name
	if p.doc, err = format.read(f, o, p.m); err == nil {
		err = p.doc.resolve(nil)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", format.name, err)
	}
	return nil
}

// Write prints the profile to w. A *ShowError, and the error for missing stacks, come before
// any output. With Own, ErrTooLarge may come later. Other errors come from w, or from a file
// that cannot be read again or has changed.
func (p *Profile) Write(w io.Writer, form Output, v View) error {
	if own, ok := p.doc.(ownDocument); ok && form == Own {
		return own.rewrite(w)
	}
	all, err := p.doc.stacks()
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	if form == Pprof || form == Own {
		return all.WritePprof(w)
	}
	value, err := shownValue(all, v.Show)
	if err != nil {
		return err
	}
	shown := withoutDropped(all)
	if form == Folded || form == Speedscope {
		used := p.m.used
		defer func() { p.m.used = used }()
		if err := p.m.take(nodes(shown) * nodeSize); err != nil {
			return fmt.Errorf("%s: its stacks: %w", p.name, err)
		}
	}
	switch form {
	case Folded:
		return shown.WriteFolded(w, value)
	case Speedscope:
		return shown.WriteSpeedscope(w, v.Label)
	}
	return writeText(w, withLeaves(shown), value, p.name, v)
}

// shownValue returns the index of the sample type to show.
func shownValue(p *stacks.Profile, show string) (int, error) {
	name := show
	if name == "" {
		name = p.Default
	}
	var types []string
	for i, v := range p.Values {
		if v.Name == name {
			return i, nil
		}
		types = append(types, v.Name)
	}
	if show != "" || len(p.Values) == 0 {
		return 0, &ShowError{show, types}
	}
	return len(p.Values) - 1, nil
}

// memory counts the memory of a profile against its budget.
type memory struct {
	share report.Share
	used  int64 // bytes
}

// take takes n bytes. It returns ErrTooLarge if the budget does not have them.
func (m *memory) take(n int) error {
	m.used += int64(n)
	if m.used <= m.share.Taken() || m.share.Reserve(m.used) {
		return nil
	}
	return ErrTooLarge
}

func (m *memory) readAll(in io.Reader) ([]byte, error) {
	var data []byte
	for {
		if len(data) == cap(data) {
			if err := m.grow(&data); err != nil {
				return nil, err
			}
		}
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// grow doubles the capacity of data, within its share of the budget. It fails if the share is full.
func (m *memory) grow(data *[]byte) error {
	size := max(64<<10, 2*cap(*data))
	if most := m.share.Budget.Most() / MemoryShare; int64(size) > most {
		size = int(most)
	}
	if size <= cap(*data) {
		return fmt.Errorf("more than %d MiB: %w", size>>20, ErrTooLarge)
	}
	if err := m.take(size - cap(*data)); err != nil {
		return err
	}
	larger := make([]byte, len(*data), size)
	copy(larger, *data)
	*data = larger
	return nil
}

// unpack decompresses data that gzip has compressed. It accepts several members, and data
// compressed twice, since a server may compress a compressed file. It returns ErrTooLarge if
// the bytes exceed a quarter of the budget, or its unused part.
func (m *memory) unpack(data []byte) ([]byte, error) {
	for range maxNested {
		if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			break
		}
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("the gzip-compressed profile is damaged: %w", err)
		}
		unpacked, err := m.readAll(z)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("%w: its compressed data ends after %d bytes", ErrCut, len(data))
		case errors.Is(err, ErrTooLarge):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("the gzip-compressed profile is damaged: %w", err)
		}
		data = unpacked
	}
	return data, nil
}
