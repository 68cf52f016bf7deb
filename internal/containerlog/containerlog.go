// Package containerlog writes the log file of a container, as container runtimes do. Each line has
// its time and stream, in the form of the Container Runtime Interface or of Docker's driver
// json-file. After a rotation, lines go to a new file of the same name.
package containerlog

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// A Form is the line format of a container's log file.
type Form uint8

const (
	CRI    Form = iota // TIME STREAM F TEXT, with P in place of F for a part of a line
	Docker             // {"log":"TEXT\n","stream":"STREAM","time":"TIME"}; a part has no \n
)

// maxPart bounds the text of one line of the file, in bytes. Container runtimes read blocks of this
// size, and cut longer lines into parts.
const maxPart = 16 << 10

// timeForm is the layout of times: in UTC and of fixed length, so lines sort by time.
const timeForm = "2006-01-02T15:04:05.000000000Z"

// A Stream is an output stream of the container. It is not safe for concurrent use. Several Streams
// may share a writer that is safe for concurrent use.
type Stream struct {
	w    io.Writer
	name string // stdout or stderr
	form Form
	now  func() time.Time

	part []byte // unwritten text of the unfinished line, at most maxPart bytes
	buf  []byte // lines for the file
}

// NewStream returns a Stream that writes to w, whole lines in each write. name is stdout or stderr.
func NewStream(w io.Writer, name string, form Form) *Stream {
	return &Stream{w: w, name: name, form: form, now: time.Now}
}

// Write writes the whole lines in p. It keeps an unfinished line for the next call.
func (s *Stream) Write(p []byte) (int, error) {
	n := len(p)
	now := s.now().UTC().AppendFormat(nil, timeForm)
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		p = rest
		s.add(now, line, whole)
	}
	return n, s.flush()
}

// add adds text of a line. whole is set if text ends the line.
func (s *Stream) add(now, text []byte, whole bool) {
	for len(s.part)+len(text) > maxPart {
		room := maxPart - len(s.part)
		s.part = append(s.part, text[:room]...)
		text = text[room:]
		s.line(now, false)
	}
	s.part = append(s.part, text...)
	if whole {
		s.line(now, true)
	}
}

// line appends a line of the log file, with the text of s.part, to s.buf. whole is set for the last
// part of a line.
func (s *Stream) line(now []byte, whole bool) {
	if s.form == Docker {
		text := string(s.part)
		if whole {
			text += "\n"
		}
		quoted, _ := json.Marshal(text) // cannot fail for a string
		s.buf = append(append(s.buf, `{"log":`...), quoted...)
		s.buf = append(append(s.buf, `,"stream":"`...), s.name...)
		s.buf = append(append(append(s.buf, `","time":"`...), now...), "\"}\n"...)
	} else {
		tag := " P "
		if whole {
			tag = " F "
		}
		s.buf = append(append(s.buf, now...), ' ')
		s.buf = append(append(s.buf, s.name...), tag...)
		s.buf = append(append(s.buf, s.part...), '\n')
	}
	s.part = s.part[:0]
}

// Close writes the unfinished line as a part, since its end is missing.
func (s *Stream) Close() error {
	if len(s.part) > 0 {
		s.line(s.now().UTC().AppendFormat(nil, timeForm), false)
	}
	return s.flush()
}

func (s *Stream) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.w.Write(s.buf)
	if s.buf = s.buf[:0]; cap(s.buf) > 1<<20 {
		s.buf = nil
	}
	return err
}

// retry is the time between two attempts to write.
const retry = 250 * time.Millisecond

// A File appends lines to a file. It is safe for concurrent use.
type File struct {
	path   string
	report func(error)
	stop   <-chan struct{}

	mu       sync.Mutex
	out      *opened
	reported string // last reported error; empty after a successful write
}

// Open opens the file at path for appending, or makes it, with mode 0640. If the machine or a
// process was stopped within the last line, Open ends that line.
//
// If the file is moved or removed, the next lines go to a new file of that name. If a write fails,
// for example since the disk is full, Write retries until it succeeds or stop is closed. It passes
// each new error to report.
func Open(path string, report func(error), stop <-chan struct{}) (*File, error) {
	out, err := open(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, report: report, stop: stop, out: out}, nil
}

// Write appends b, which has whole lines. It returns an error only after stop was closed.
func (f *File) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for done := 0; ; {
		n, err := f.write(b[done:], done == 0)
		if done += n; err == nil {
			f.reported = ""
			return len(b), nil
		}
		if text := err.Error(); text != f.reported {
			f.reported = text
			f.report(err)
		}
		select {
		case <-f.stop:
			return done, err
		case <-time.After(retry):
		}
	}
}

// write writes b to the open file. If start is set, b begins a line: if the path then leads to
// another file or to none, write opens a new file there first.
func (f *File) write(b []byte, start bool) (int, error) {
	if start && !f.out.isAt(f.path) {
		next, err := open(f.path)
		if err != nil {
			return 0, err
		}
		f.out.Close() // an error has no meaning: each Write was complete
		f.out = next
	}
	return f.out.Write(b)
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Close()
}
