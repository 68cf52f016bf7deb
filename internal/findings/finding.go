package findings

import (
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// A Finding is one error of a program, from the report of a tool. Readers make findings, a
// [Collection] merges equal ones, and printers show them. The zero value is empty.
type Finding struct {
	Source  Source
	Tool    string // name in lower case: memcheck, helgrind, asan, ubsan, rtrace
	Kind    string // the tool's name for the error: InvalidRead, heap-use-after-free
	Message string // line of text, without the numbers of thread and process
	Memory  Memory // kind of the address, if the error is an access to memory

	// Traces are the stacks, beginning with the error's. A finding may have none.
	Traces []Trace

	Bytes  uint64 // bytes of a leak; 0 for other kinds
	Blocks uint64 // blocks of a leak; 0 for other kinds

	// Detail has further lines of the report, for people; at most 16.
	Detail []string

	// set by Identify
	Fingerprint string // 32 hexadecimal digits, equal for the same error in another build
	Own         int    // index of the innermost own frame in Traces[0].Frames; -1: none

	// set by Collection.Add
	Ordinal int          // 1 for a process's first finding with its Fingerprint
	Seen    []Occurrence // occurrences by process, in the order of Add
}

// A Source is the kind of input that a finding comes from.
type Source string

// The sources. The first field of a fingerprint is the source, a slash and the version.
const (
	FromValgrind Source = "valgrind"
	FromLog      Source = "log"
	FromRTrace   Source = "rtrace"
)

// version is the version of fingerprints. A change makes every baseline of users stale.
const version = "1"

// A Memory is the kind of memory that a wrong access has hit.
type Memory uint8

// The kinds of memory.
const (
	MemoryUnknown Memory = iota
	MemoryAlive          // in or beside an allocated block
	MemoryFreed          // in a freed block
	MemoryOutside        // in no block
)

// A Trace is a stack of a finding.
type Trace struct {
	Role    Role
	Message string // line before the frames, which describes the event

	// Frames are the frames, the innermost first. An inlined call has a separate frame. Findings
	// may share a TraceFrame, which nothing changes after Identify: 30,000 errors of a program have
	// about 10,000 different frames.
	Frames []*TraceFrame
}

// A Role is the kind of event that a trace shows.
type Role uint8

// The roles.
const (
	RoleError     Role = iota // location of the error
	RoleAllocated             // allocation of the memory
	RoleFreed                 // free of the memory
	RoleOther                 // another event: a thread's creation, the other access of a race
)

// A TraceFrame is a frame of a trace. Unknown fields of its symbolize.Frame are zero. A frame
// without a function may still have a file and a line.
type TraceFrame struct {
	symbolize.Frame

	Object  string     // path or name of the object file; empty: unknown
	ID      buildid.ID // build ID of the object file; zero: unknown
	Address uint64     // address in the process; 0: unknown
	Offset  uint64     // module-relative address; 0: unknown
	IsOwn   bool       // the frame is the program's own, not the system's; set by Identify

	identified identified // set by Identify
	counted    bool       // a Collection has counted its bytes
}

// Refer returns a pointer to each frame.
func Refer(frames []TraceFrame) []*TraceFrame {
	all := make([]*TraceFrame, len(frames))
	for i := range frames {
		all[i] = &frames[i]
	}
	return all
}

// Named reports whether the frame has a function name.
func (f *TraceFrame) Named() bool { return f.Func != "" || f.Linkage != "" }

// An Occurrence records how often a process had a finding.
type Occurrence struct {
	Process int // number of the process in its Collection
	Count   uint64
}

// Count returns how often the finding occurred in all processes.
func (x *Finding) Count() (n uint64) {
	for i := range x.Seen {
		n += x.Seen[i].Count
	}
	return n
}

// OwnFrame returns the innermost own frame of the first trace, or nil.
func (x *Finding) OwnFrame() *TraceFrame {
	if len(x.Traces) == 0 || x.Own < 0 || x.Own >= len(x.Traces[0].Frames) {
		return nil
	}
	return x.Traces[0].Frames[x.Own]
}

// Place returns the frame that represents the finding: the innermost own frame with a line, or else
// the innermost own frame. If no frame is own, it returns the innermost frame with a line, or else
// the first frame. It returns nil if there is no frame.
func (x *Finding) Place() *TraceFrame {
	if len(x.Traces) == 0 || len(x.Traces[0].Frames) == 0 {
		return nil
	}
	frames := x.Traces[0].Frames
	var lined *TraceFrame
	for _, f := range frames {
		if !f.HasLine {
			continue
		}
		if f.IsOwn {
			return f
		}
		if lined == nil {
			lined = f
		}
	}
	switch own := x.OwnFrame(); {
	case own != nil: // the line of a system frame does not show the fault of the program
		return own
	case lined != nil:
		return lined
	}
	return frames[0]
}

// Identify sets IsOwn of all frames, by the rules of own, and computes the fingerprint: see
// Stack.fingerprint. The fields are source/version, tool, kind, message class and kind of memory.
// The frames are the first trace's. The message class is the message with N for each number and
// address.
func (x *Finding) Identify(own *Own) {
	x.Own = -1
	var stack Stack
	judge := judgeOf(own)
	for t := range x.Traces {
		for i, f := range x.Traces[t].Frames {
			if !f.identified.done || f.identified.own != own || f.identified.source != x.Source {
				f.identify(x.Source, &judge)
			}
			if t > 0 {
				continue
			}
			if f.IsOwn && x.Own < 0 {
				x.Own = i
			}
			stack.add(f.identified.name, f.identified.object, f.IsOwn)
		}
	}
	var buf [1 << 10]byte
	b := append(append(buf[:0], x.Source...), "/"+version...)
	b = appendField(b, x.Tool)
	b = appendField(b, x.Kind)
	b = appendMessageClass(append(b, 0), x.Message)
	b = append(append(b, 0), [...]string{"", "alive", "freed", "outside"}[x.Memory]...)
	x.Fingerprint = stack.fingerprint(b)
}

// An identified holds the results of TraceFrame.identify for one source and one Own. A frame that
// several findings share is examined only once.
type identified struct {
	done         bool
	own          *Own
	source       Source
	name, object string // arguments of Stack.add
}

// identify sets f.IsOwn. It also stores, in f.identified, the arguments for adding f to a Stack.
func (f *TraceFrame) identify(source Source, judge *frameJudge) {
	link := f.Linkage
	if link == "" {
		link = f.Func
	}
	f.IsOwn = judge.is(link, f.File, f.Object)
	known := identified{done: true, own: judge.own, source: source, object: f.Object}
	switch {
	case f.Named() && source != FromValgrind: // other sources may lack linkage names
		known.name = StableName(&symbolize.Frame{Linkage: loggedName(&f.Frame)})
	case f.Named():
		known.name = StableName(&f.Frame)
	case f.Object == "": // an error without a stack, such as UndefinedBehaviorSanitizer's
		known.object = f.File
	}
	known.object = known.object[strings.LastIndexByte(known.object, '/')+1:]
	f.identified = known
}

// appendField appends NUL, which separates the fields of a fingerprint, and s without NUL.
func appendField(dst []byte, s string) []byte {
	return append(append(dst, 0), strings.ReplaceAll(s, "\x00", "")...)
}

// appendMessageClass appends message with N for each number: digits, with or without thousands
// separators, and hexadecimal digits after 0x. Digits after a letter or an underscore stay, as in
// int32. NULs are left out.
func appendMessageClass(dst []byte, message string) []byte {
	for i := 0; i < len(message); {
		c := message[i]
		if c < '0' || c > '9' || i > 0 && report.IsWordByte(message[i-1]) {
			if c != 0 {
				dst = append(dst, c)
			}
			i++
			continue
		}
		if hex := message[i:]; len(hex) > 2 && hex[0] == '0' && hex[1]|0x20 == 'x' {
			i += 2
			for i < len(message) && isHexDigit(message[i]) {
				i++
			}
		} else {
			for i < len(message) && (message[i] >= '0' && message[i] <= '9' || message[i] == ',' && i+1 < len(message) && message[i+1] >= '0' && message[i+1] <= '9') {
				i++
			}
		}
		dst = append(dst, 'N')
	}
	return dst
}

func isHexDigit(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
