package profile

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path"
	"strconv"

	"github.com/klauspost/compress/gzip"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
	"github.com/symfilter/symfilter/symbolize"
)

// A traceFile is a file of DHAT or Massif. It is read more than once, since the names of its
// first frames depend on facts at its end. A regular file of any size is read from the disk,
// any other file from memory.
type traceFile struct {
	io.ReadSeeker
	begin int64  // offset at which reading begins
	head  []byte // first bytes, which show the format
}

// regularTrace returns the input in as a traceFile, or nil if it is not a regular file of DHAT or
// Massif.
func regularTrace(in io.Reader) *traceFile {
	f, ok := in.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	begin, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil
	}
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, begin)
	if err != nil && err != io.EOF || traceOf(head[:n]) == nil {
		return nil
	}
	return &traceFile{f, begin, head[:n]}
}

func (f *traceFile) rewind() error {
	_, err := f.Seek(f.begin, io.SeekStart)
	return err
}

// traceOf returns the format of a file that begins with head, or nil.
func traceOf(head []byte) *traceFormat {
	switch {
	case isDHAT(head):
		return &traceFormat{"DHAT file", readDHAT}
	case isMassif(head):
		return &traceFormat{"Massif file", readMassif}
	}
	return nil
}

// A traceFormat is a format of files that are read more than once.
type traceFormat struct {
	name string // name in messages
	read func(f *traceFile, o *Options, m *memory) (document, error)
}

// IsTrace reports whether head begins a file of DHAT or Massif. Own prints such a file as
// Valgrind's tool does, best with the names of [symbolize.ValgrindNames].
func IsTrace(head []byte) bool { return traceOf(head) != nil }

// IsPackedTrace is IsTrace for a file compressed by gzip. Read unpacks such a file.
func IsPackedTrace(head []byte) bool {
	z, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return false
	}
	begin := make([]byte, headSize)
	n, _ := io.ReadFull(z, begin) // the rest of the file is missing here
	return IsTrace(begin[:n])
}

// An ownDocument is a document that can be printed in the format of the input.
type ownDocument interface {
	document
	rewrite(w io.Writer) error
}

// A named holds a frame of the file, and the symbolizer's frames at the same address if they add
// names or lines.
type named struct {
	raw    report.RawFrame
	frames []symbolize.Frame // innermost first; none if they add nothing to the file
	id     buildid.ID        // build ID of the object; zero if unknown
}

const frameCost = 288 // bytes of a frame that the symbolizer returned

// A namer names the frames of a file of DHAT or Massif.
type namer struct {
	o        *Options
	m        *memory
	places   Places
	spelling spelling
}

// newNamer returns the namer for a process with this command line.
func newNamer(o *Options, m *memory, command string) *namer {
	n := &namer{o: o, m: m}
	if o.Places != nil {
		n.places = o.Places(program(command))
	}
	return n
}

// learn passes a frame to the spelling and to the Places: see Places.Learn.
func (n *namer) learn(f, inner *report.RawFrame) {
	n.spelling.learn(f)
	if n.places == nil || f.Object == "" {
		return
	}
	if inner == nil {
		inner = &report.RawFrame{}
	}
	n.places.Learn(*f, *inner)
}

// name looks up the names of f, unless f has a line.
func (n *namer) name(f *named) error {
	if n.places == nil || f.raw.Line != 0 {
		return nil
	}
	f.frames, f.id = n.places.Frames(f.raw)
	return n.m.take(len(f.frames) * frameCost)
}

func (n *namer) close() {
	if n.places != nil {
		n.places.Close()
	}
}

// isExact reports whether f, the first frame of a stack, has an exact address. This is true in
// Valgrind's preloaded library, which replaces malloc and similar functions. If Valgrind omits the
// frames in that library, the first frame is a caller.
func isExact(f *report.RawFrame) bool {
	return len(path.Base(f.Object)) > len(preloaded) && path.Base(f.Object)[:len(preloaded)] == preloaded
}

const preloaded = "vgpreload_"

// A stackMaker makes the locations of a profile from frames.
type stackMaker struct {
	p *stacks.Profile
	o *Options
	m *memory
}

func (s *stackMaker) location(f *named) (uint32, error) {
	size := locationSize
	l := stacks.Location{Address: f.raw.Addr, Mapping: s.mapping(f.raw.Object, f.id)}
	line := func(fn stacks.Function, line, column int64) {
		if fn.Name == "" {
			fn.Name = nameless(&f.raw)
		}
		l.Lines = append(l.Lines, stacks.Line{Function: s.p.AddFunction(fn), Line: line, Column: column})
		size += len(fn.Name) + len(fn.LinkName) + len(fn.File) + locationSize
	}
	for i := range f.frames {
		shown := s.o.Shown(&f.frames[i])
		fn := stacks.Function{Name: shown.Func, LinkName: shown.Linkage, File: shown.File}
		if shown.HasLine {
			line(fn, int64(shown.Line), int64(shown.Column))
		} else {
			line(fn, 0, 0)
		}
	}
	if len(f.frames) == 0 {
		line(stacks.Function{Name: f.raw.Func, File: s.o.ShownFile(f.raw.File)}, int64(f.raw.Line), 0)
	}
	return s.p.AddLocation(l), s.m.take(size)
}

// sample adds a sample with copies of the slices. Equal stacks are one sample.
func (s *stackMaker) sample(stack []uint32, values []int64) error {
	before := len(s.p.Samples)
	s.p.AddSample(stacks.Sample{Stack: stack, Values: values})
	if len(s.p.Samples) == before {
		return nil
	}
	return s.m.take(sampleSize + len(stack)*2*frameSize + len(values)*valueSize)
}

// mapping returns the number of object's mapping, or 0 if object is empty. The mapping has no start
// or end address, since files of DHAT and Massif do not list them.
func (s *stackMaker) mapping(object string, id buildid.ID) uint32 {
	if object == "" {
		return 0
	}
	return s.p.AddMapping(stacks.Mapping{File: object, BuildID: id.String()}.Symbolized())
}

// nameless names the function of a frame without a name.
func nameless(f *report.RawFrame) string {
	name := "0x" + strconv.FormatUint(f.Addr, 16)
	if f.Object != "" {
		name += " (in " + path.Base(f.Object) + ")"
	}
	return name
}

// isProgram reports whether object is the program of a command line.
func isProgram(object, command string) bool {
	return object != "" && path.Base(object) == path.Base(program(command))
}

// special returns the number of a location that has this name and no address.
func (s *stackMaker) special(name string) uint32 {
	return s.p.AddLocation(stacks.Location{Lines: []stacks.Line{{Function: s.p.AddFunction(stacks.Function{Name: name})}}})
}

func buffered(w io.Writer) *bufio.Writer { return bufio.NewWriterSize(w, 64<<10) }
