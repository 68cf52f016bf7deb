package profile

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/demangle"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// Places finds the load addresses of a process's object files, and names frames. Files of DHAT
// and Massif need it, since they have no map. Package valgrind implements it: see
// [access.Valgrind].
type Places interface {
	// Learn records that f is in the code of its object. inner is the frame that f called, or the
	// zero value if unknown.
	Learn(f, inner report.RawFrame)

	// Frames returns the frames at the address of f, innermost first, or none if they add
	// nothing to the file. The ID is the object's build ID, zero if unknown. Call Learn for all
	// frames first.
	Frames(f report.RawFrame) ([]symbolize.Frame, buildid.ID)

	// Close reports the frames without names, and releases the Places.
	Close()
}

// unknownFunc is Valgrind's text for an unknown function.
const unknownFunc = "???"

// parseFrame reads a frame as Valgrind's tools write it (coregrind/m_debuginfo/debuginfo.c,
// describe_IP):
//
//	0x109247: main (prog.cc:16)
//	0x109247: ??? (in /opt/app)
//	0x37: ???
func parseFrame(text []byte) (f report.RawFrame, ok bool) {
	digits, rest, ok := bytes.Cut(text, []byte(": "))
	if !ok || !bytes.HasPrefix(digits, []byte("0x")) {
		return f, false
	}
	if f.Addr, ok = report.Hex(digits[2:]); !ok {
		return f, false
	}
	fn := rest
	if i := bytes.Index(rest, []byte(" (in /")); i >= 0 && rest[len(rest)-1] == ')' { // a path may have " (in /", too
		fn, f.Object = rest[:i], string(rest[i+len(" (in "):len(rest)-1])
	} else if i := beginOfPlace(rest); i >= 0 && rest[len(rest)-1] == ')' {
		place := rest[i+len(" (") : len(rest)-1]
		if colon := bytes.LastIndexByte(place, ':'); colon > 0 {
			if line, err := strconv.ParseUint(string(place[colon+1:]), 10, 32); err == nil {
				fn, f.File, f.Line = rest[:i], string(place[:colon]), line
			}
		}
	}
	if string(fn) != unknownFunc {
		f.Func = string(fn)
	}
	return f, true
}

// beginOfPlace returns the index of " (" before the name of a source file, or -1. Paths
// (--fullpath-after) may have blanks and brackets, but names of functions do not have " (/".
func beginOfPlace(text []byte) int {
	if i := bytes.Index(text, []byte(" (/")); i >= 0 {
		return i
	}
	return bytes.LastIndex(text, []byte(" ("))
}

// A spelling describes how a file spells names, which depends on Valgrind's flags.
type spelling struct {
	mangled bool // names of C++ and Rust are mangled: --demangle=no
	// all callers of main have the name report.BelowMain: without --show-below-main=yes
	below   bool
	folders bool // names of files have folders: --fullpath-after
}

// learn updates the spelling from a frame of the file.
func (s *spelling) learn(f *report.RawFrame) {
	s.mangled = s.mangled || report.IsMangled(f.Func)
	s.below = s.below || f.Func == report.BelowMain
	s.folders = s.folders || strings.Contains(f.File, "/")
}

// appendFrames appends Valgrind's texts for the frames of f to dst, innermost first. An inlined
// call is a separate frame with the same address.
func (s *spelling) appendFrames(dst []string, f *named) []string {
	var b []byte
	for i := range f.frames {
		b = append(b[:0], "0x"...)
		b = append(b, strings.ToUpper(strconv.FormatUint(f.raw.Addr, 16))...)
		b = append(append(b, ": "...), s.name(&f.frames[i])...)
		if x := &f.frames[i]; x.HasLine && x.Line > 0 {
			file := x.File
			if !s.folders {
				file = file[min(max(x.Dir, 0), len(file)):]
			}
			b = append(append(append(b, " ("...), file...), ':')
			b = append(strconv.AppendUint(b, uint64(x.Line), 10), ')')
		} else {
			b = append(append(append(b, " (in "...), f.raw.Object...), ')')
		}
		dst = append(dst, string(b))
	}
	return dst
}

// name returns the name of a function in Valgrind's spelling.
func (s *spelling) name(f *symbolize.Frame) string {
	link := report.LinkName(f)
	switch {
	case s.below && report.IsBelowMain(link):
		return report.BelowMain
	case s.mangled || link == "" || f.Func == f.Linkage: // not a mangled name, or mangled names are wanted
		return cmp.Or(f.Linkage, f.Func, unknownFunc)
	}
	return demangle.GNU(link)
}

// program returns the first word of a command line.
func program(command string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	return first
}
