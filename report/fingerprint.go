package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/symfilter/symfilter/symbolize"
)

// The number of frames of a fingerprint, and the bound of each name in bytes: of a longer name of
// C++ the beginning is used.
const (
	ownFrames   = 8 // the innermost own frames
	namedFrames = 4 // the innermost frames with a name, if none is own
	maxLinkage  = 4 << 10
)

// A Stack collects the frames of a stack, innermost first, for their fingerprint. Its zero value has
// none. It keeps a copy of the at most 16 names that it needs, whatever the number of frames.
type Stack struct {
	own, named, objects frameNames
}

// frameNames is a list of different names, each ended by NUL.
type frameNames struct {
	text []byte
	n    int
}

// add adds name up to its first NUL, unless the list has it already or has most names. So recursion,
// of one function or of several that call each other, adds nothing.
func (l *frameNames) add(name string, most int) {
	name, _, _ = strings.Cut(name[:min(len(name), maxLinkage)], "\x00") // an object's may have a NUL
	if l.n == most || name == "" {
		return
	}
	for rest := l.text; len(rest) > 0; rest = rest[bytes.IndexByte(rest, 0)+1:] {
		if len(rest) > len(name) && rest[len(name)] == 0 && string(rest[:len(name)]) == name {
			return
		}
	}
	l.text = append(append(l.text, name...), 0)
	l.n++
}

// Reset removes all frames.
func (s *Stack) Reset() {
	for _, l := range []*frameNames{&s.own, &s.named, &s.objects} {
		l.text, l.n = l.text[:0], 0
	}
}

// Add adds the frame that called the frames so far, or the innermost one. f is nil if it has no
// answer; object is the path or name of its object file; own is the answer of [Own.Is].
func (s *Stack) Add(f *symbolize.Frame, object string, own bool) {
	if s.named.n == namedFrames && (!own || s.own.n == ownFrames) {
		return // no fingerprint would have it
	}
	object = object[strings.LastIndexByte(object, '/')+1:]
	name := ""
	if f != nil {
		name = StableName(f)
	}
	switch {
	case name != "":
		s.named.add(name, namedFrames)
	case object != "":
		name = object
		s.objects.add(name, namedFrames)
	default:
		return
	}
	if own {
		s.own.add(name, ownFrames)
	}
}

// Empty reports whether the stack has no frame with a name or an object file.
func (s *Stack) Empty() bool { return s.named.n == 0 && s.objects.n == 0 }

// Fingerprint returns 32 hexadecimal digits that are the same for the same fault in another build of
// the program. fields come before the frames: the first is the kind of the report with the version
// of the fingerprint, such as log/1. No field has a NUL.
//
// It is the first 16 bytes of the SHA-256 hash of the fields and of names of frames, with a NUL
// between each two: the stable names of the 8 innermost own frames, in which a function appears
// once; without an own frame, those of the 4 innermost frames with a name. An own frame without a
// name has the base name of its object file in its place; so have the frames of a stack without any
// name. No line, column, address, folder, size, thread or process is in it.
func (s *Stack) Fingerprint(fields ...string) string {
	names := &s.own
	if names.n == 0 {
		names = &s.named
	}
	if names.n == 0 {
		names = &s.objects
	}
	h := sha256.New()
	h.Write([]byte(strings.Join(fields, "\x00")))
	if n := len(names.text); n > 0 {
		h.Write([]byte{0})
		h.Write(names.text[:n-1])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
