package findings

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Numbers of frames in a fingerprint, and the bound of each name in bytes. Longer C++ names are
// cut.
const (
	ownFrames   = 8 // innermost own frames
	namedFrames = 4 // innermost frames with a name, if none is own
	maxLinkage  = 4 << 10
)

// A Stack collects the frames of a stack, innermost first, for their fingerprint. The zero value
// has no frames. A Stack keeps at most 16 names, whatever the number of frames.
type Stack struct {
	own, named, objects frameNames
}

// A frameNames is a list of at most ownFrames different names.
type frameNames struct {
	names [ownFrames]string
	n     int
}

// add adds name up to its first NUL, unless the list already has it, or has the maximum number of
// names. So recursion, of one function or of several that call each other, adds nothing.
func (l *frameNames) add(name string, most int) {
	if l.n == most {
		return
	}
	name = name[:min(len(name), maxLinkage)]
	if i := strings.IndexByte(name, 0); i >= 0 { // the name of an object may contain a NUL
		name = name[:i]
	}
	if name != "" && !slices.Contains(l.names[:l.n], name) {
		l.names[l.n] = name
		l.n++
	}
}

// isFull reports whether another frame cannot change the fingerprint. own is set if that frame is
// the program's own.
func (s *Stack) isFull(own bool) bool {
	return s.named.n == namedFrames && (!own || s.own.n == ownFrames)
}

// add adds a frame. name is its stable name, or empty. object is the base name of its object file,
// or of its source file if the error has no stack.
func (s *Stack) add(name, object string, own bool) {
	if s.isFull(own) {
		return
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

// fingerprint returns 32 hexadecimal digits, the same for the same fault in another build of the
// program. fields come before the frames, joined by NUL: the first is the kind of the report with
// the version of the fingerprint, such as log/1. The memory after fields is overwritten.
//
// The digits are the first 16 bytes of the SHA-256 hash of the fields and the names of frames,
// separated by NULs. The names are the stable names of the 8 innermost own frames, each once.
// Without an own frame, they are the stable names of the 4 innermost frames with a name. The base
// name of the object file replaces a missing name of an own frame, and all names in a stack without
// names. The fingerprint has no line, column, address, folder, size, thread or process.
func (s *Stack) fingerprint(fields []byte) string {
	names := &s.own
	if names.n == 0 {
		names = &s.named
	}
	if names.n == 0 {
		names = &s.objects
	}
	for _, name := range names.names[:names.n] {
		fields = append(append(fields, 0), name...)
	}
	sum := sha256.Sum256(fields)
	var digits [32]byte
	hex.Encode(digits[:], sum[:16])
	return string(digits[:])
}
