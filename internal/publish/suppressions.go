package publish

import (
	"fmt"
	"hash/maphash"
	"io"
	"math/bits"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/report"
)

// maxCallers is Valgrind's limit on the frame lines of a suppression (VG_MAX_SUPP_CALLERS).
const maxCallers = 24

// Suppressions prints a Valgrind suppression for each finding that Valgrind can suppress. Its name
// has the finding's kind, the program's own function in it, and its fingerprint. As in Valgrind,
// frames have linkage names, and inlined calls have their source names. The suppression
// matches if Valgrind finds the debug information. A second suppression may follow in a comment: it
// names object files instead of functions, and also matches the stripped program. A suppression
// that another one covers is omitted. Suppressions fails only if w does.
func Suppressions(w io.Writer, r *Result) error {
	p := suppressions{of: r, lines: make(map[*findings.TraceFrame]suppressionLines), known: make(map[uint64]*suppression), seed: maphash.MakeSeed()}
	var all []*suppression
	wide := make(map[string][]*suppression) // suppressions with "...", by kind
	for _, x := range r.All() {
		if x.Source != findings.FromValgrind {
			continue
		}
		kind, extra := suppressionKind(x)
		if kind == "" || len(x.Traces) == 0 || len(x.Traces[0].Frames) == 0 {
			continue
		}
		s := &suppression{of: x, kind: toolName(x.Tool) + ":" + kind, extra: extra}
		frames := p.stack(s, &p.own).names
		all = append(all, s)
		sums := p.sums(s, frames)
		if sum := sums[len(frames)-1]; p.known[sum] == nil {
			p.known[sum] = s
		}
		if key := s.key(); slices.Contains(frames, "...") && len(frames) <= maxWide && len(wide[key]) < maxCovering {
			s.wide = slices.Clone(frames)
			wide[key] = append(wide[key], s)
		}
	}
	b := []byte("# Suppressions for Valgrind: --suppressions=FILE. They match if Valgrind finds the debug files, for example in\n# /usr/lib/debug/.build-id.\n")
	if p.nameless {
		b = append(b, "# The report lacks linkage names of some functions: obj: lines replace these, and hide more errors. To get the\n# names, run Valgrind with --gen-suppressions=all, or name the program: --symbol-path PROGRAM.\n"...)
	}
	for _, s := range all {
		lines := p.stack(s, &p.own)
		frames, objects := lines.names, lines.objects
		if !lines.named {
			objects = nil
		}
		if !p.isFirst(s, frames) || slices.ContainsFunc(wide[s.key()], func(other *suppression) bool { return isWithin(frames, other.wide) }) {
			continue
		}
		name := suppressionName(s.of)
		b = s.appendBlock(append(b, '\n'), "", name, frames)
		if len(objects) > 0 {
			b = append(b, "# The next suppression matches the stripped program, and hides any "+s.kind+" with calls through these files:\n"...)
			b = s.appendBlock(b, "# ", name, objects)
		}
		if len(b) > bufferSize {
			if _, err := w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	_, err := w.Write(b)
	return err
}

type suppression struct {
	of    *findings.Finding
	kind  string   // with the tool: Memcheck:Addr4
	extra string   // line after the kind; empty: none
	wide  []string // frames, innermost first, if "..." among them may cover others
}

// A suppressions value makes the lines of suppressions. It makes the lines again when needed, since
// keeping them would take most of the memory.
type suppressions struct {
	of    *Result
	lines map[*findings.TraceFrame]suppressionLines // lines of frames used before
	// first suppression with given frames, by the last hash in sums
	known map[uint64]*suppression
	seed  maphash.Seed

	nameless bool // an own function has a name, but no linkage name

	// Scratch memory: the lines of the current suppression and of another one, and the result of
	// sums.
	own, other stackLines
	hashes     []uint64
}

// A stackLines has the lines of a suppression's stack twice: with function names, and with object
// files. named is set if one of the names is an own function. Without such a name, a
// suppression by object files would hide too much.
type stackLines struct {
	names, objects []string
	named          bool
}

// A suppressionLines has two lines for an own frame: one with its name, and one with its object
// file.
type suppressionLines struct {
	name, object string
	named        bool
}

// maxSuppressionLines bounds the frames whose lines are in memory.
const maxSuppressionLines = 64 << 10

// sums returns a hash for each prefix of frames. Each hash also covers the kind of s and the line
// after the kind. The hashes are valid until the next call.
func (p *suppressions) sums(s *suppression, frames []string) []uint64 {
	sum := maphash.String(p.seed, s.kind) ^ bits.RotateLeft64(maphash.String(p.seed, s.extra), 1)
	p.hashes = p.hashes[:0]
	for _, f := range frames {
		// an odd factor loses no bit
		sum = (bits.RotateLeft64(sum, 5) ^ maphash.String(p.seed, f)) * 0x9E3779B97F4A7C15
		p.hashes = append(p.hashes, sum)
	}
	return p.hashes
}

// isFirst reports whether no other suppression covers s, and no earlier suppression has the same
// frames. A suppression whose frames are a prefix of the frames of s covers s: Valgrind compares
// only the frames of a suppression.
func (p *suppressions) isFirst(s *suppression, frames []string) bool {
	for n, sum := range p.sums(s, frames) {
		other := p.known[sum]
		if other == nil || other == s || other.kind != s.kind || other.extra != s.extra {
			continue
		}
		if slices.Equal(p.stack(other, &p.other).names, frames[:n+1]) {
			return false
		}
	}
	return true
}

func (s *suppression) key() string { return s.kind + "\n" + s.extra }

// Bounds of the search for suppressions that cover others: frames of a covering suppression, and
// number of covering suppressions of one kind.
const (
	maxWide     = 6
	maxCovering = 64
)

// isWithin reports whether one suppression covers another: it then matches every error that the
// other matches. The second argument has the frames of the covering suppression, and the first has
// the frames of the covered one. The result is false if the frames are equal.
func isWithin(frames, other []string) bool {
	return !slices.Equal(other, frames) && matchCalls(other, len(frames), func(call string, n int) bool { return call == frames[n] })
}

// appendBlock appends a suppression in Valgrind's syntax, with prefix before each of its lines.
func (s *suppression) appendBlock(b []byte, prefix, name string, frames []string) []byte {
	line := func(indent, text string) {
		b = append(escape.AppendText(append(append(b, prefix...), indent...), text, ""), '\n')
	}
	line("", "{")
	line("   ", name)
	line("   ", s.kind)
	if s.extra != "" {
		line("   ", s.extra)
	}
	for _, f := range frames {
		line("   ", f)
	}
	line("", "}")
	return b
}

func suppressionName(x *findings.Finding) string {
	name := x.Kind
	if f := x.Place(); f != nil && f.Named() {
		name += " " + functionOf(f)
	}
	return name + " " + x.ID()
}

func toolName(tool string) string {
	switch tool {
	case "memcheck":
		return "Memcheck"
	case "helgrind":
		return "Helgrind"
	}
	return tool
}

// suppressionKind returns the kind of a finding in suppressions, and the line after it. The kind is
// empty if Valgrind cannot suppress such findings.
func suppressionKind(x *findings.Finding) (kind, extra string) {
	switch x.Kind {
	case "FatalSignal":
		return "", ""
	case "InvalidRead", "InvalidWrite":
		return "Addr" + sizeOf(x.Message), ""
	case "UninitValue":
		return "Value" + sizeOf(x.Message), ""
	case "UninitCondition":
		return "Cond", ""
	case "InvalidJump":
		return "Jump", ""
	case "InvalidFree", "MismatchedFree":
		return "Free", ""
	case "InvalidMemPool":
		return "Mempool", ""
	case "CoreMemError":
		return "CoreMem", ""
	case "ClientCheck":
		return "User", ""
	case "ReallocSizeZero":
		return "ReallocZero", ""
	case "SyscallParam": // Syscall param write(buf) points to uninitialised byte(s)
		_, rest, _ := strings.Cut(x.Message, "Syscall param ")
		for _, verb := range []string{" points to ", " contains "} {
			if name, _, ok := strings.Cut(rest, verb); ok {
				return "Param", name
			}
		}
		return "Param", "*"
	case "FishyValue": // Argument 'size' of function malloc has a fishy (possibly negative) value: -1
		var argument, function string
		if n, _ := fmt.Sscanf(x.Message, "Argument %s of function %s", &argument, &function); n == 2 {
			return "FishyValue", function + "(" + strings.Trim(argument, "'") + ")"
		}
		return "FishyValue", "*"
	case "Leak_DefinitelyLost":
		return "Leak", leakKinds + "definite"
	case "Leak_IndirectlyLost":
		return "Leak", leakKinds + "indirect"
	case "Leak_PossiblyLost":
		return "Leak", leakKinds + "possible"
	case "Leak_StillReachable":
		return "Leak", leakKinds + "reachable"
	}
	return x.Kind, ""
}

const leakKinds = "match-leak-kinds: "

// sizeOf returns the number after "of size" in a message such as "Invalid read of size 4".
func sizeOf(message string) string {
	_, size, _ := strings.Cut(message, " of size ")
	end := 0
	for end < len(size) && '0' <= size[end] && size[end] <= '9' {
		end++
	}
	return size[:end]
}

// stack returns the lines of a suppression's stack, at most maxCallers. The result is the last
// argument, whose memory stack reuses. Several frames of the system in a row become "...". Frames
// after the last own frame are left out. If the stack has no own frame, all its frames are kept.
func (p *suppressions) stack(s *suppression, to *stackLines) *stackLines {
	frames := s.of.Traces[0].Frames
	names, objects := to.names[:0], to.objects[:0]
	last := len(frames) - 1
	for last >= 0 && !frames[last].IsOwn {
		last--
	}
	isOwn := func(i int) bool { return last < 0 || i < len(frames) && frames[i].IsOwn }
	if last >= 0 {
		frames = frames[:last+1]
	}
	to.named = false
	for i, f := range frames {
		if !isOwn(i) {
			call := "..."
			// a single frame, such as malloc, is named: "..." would hide more
			if (i == 0 || isOwn(i-1)) && isOwn(i+1) {
				call = p.systemCall(f)
			}
			if len(names) == 0 || names[len(names)-1] != "..." {
				names, objects = append(names, call), append(objects, call)
			}
		} else {
			own := p.linesOf(f)
			to.named = to.named || own.named && last >= 0
			names = append(names, own.name)
			if !f.Inlined { // a function and the calls inlined into it count as one frame
				objects = append(objects, own.object)
			}
		}
		if len(names) == maxCallers {
			break
		}
	}
	for len(names) > 1 && names[len(names)-1] == "..." {
		names = names[:len(names)-1]
	}
	to.names, to.objects = names, objects
	return to
}

// linesOf returns the lines of an own frame. It keeps them, since findings share frames.
func (p *suppressions) linesOf(f *findings.TraceFrame) suppressionLines {
	if known, ok := p.lines[f]; ok {
		return known
	}
	lines := suppressionLines{object: "obj:*"}
	if f.Object != "" {
		lines.object += f.Object[max(0, strings.LastIndexByte(f.Object, '/')):]
	}
	lines.name = lines.object
	if fn := nativeName(p.of, f); fn != "" {
		lines.name, lines.named = "fun:"+fn, true
	} else if f.Func != "" {
		p.nameless = true
	}
	if len(p.lines) < maxSuppressionLines {
		p.lines[f] = lines
	}
	return lines
}

// nativeName returns Valgrind's name for a frame's function, or "". A wildcard replaces template
// arguments of an inlined call, which demanglers and compilers spell differently.
func nativeName(r *Result, f *findings.TraceFrame) string {
	if f.Inlined {
		name := report.BareName(f.Func)
		if i := strings.IndexByte(name, '<'); i > 0 && !strings.HasPrefix(name, "operator") {
			name = name[:i] + "<*"
		}
		return name
	}
	if report.IsBelowMain(f.Linkage) && f.Linkage != "_start" {
		return report.BelowMain
	}
	return anyVariant(r.Linkage(f))
}

// anyVariant returns the name of a constructor or destructor with a wildcard for its variant. Equal
// variants share an address, which may have either symbol.
func anyVariant(link string) string {
	if !strings.HasPrefix(link, "_ZN") {
		return link
	}
	for _, variant := range []string{"C1E", "C2E", "D0E", "D1E", "D2E"} {
		if i := strings.LastIndex(link, variant); i > 0 {
			return link[:i+1] + "?" + link[i+2:]
		}
	}
	return link
}

// systemCall returns the line for a single frame of the system.
func (p *suppressions) systemCall(f *findings.TraceFrame) string {
	link := p.of.Linkage(f)
	switch {
	case strings.HasPrefix(f.Func, "operator new[]"):
		return "fun:_Zna*"
	case strings.HasPrefix(f.Func, "operator new"):
		return "fun:_Znw*"
	case strings.HasPrefix(f.Func, "operator delete"):
		return "fun:_Zd*"
	case f.Inlined || link == "" || strings.ContainsAny(link, " (@"):
		return "..."
	}
	return "fun:" + link
}
