package publish

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/report"
)

// maxCallers is how many lines of frames Valgrind reads of a suppression (VG_MAX_SUPP_CALLERS).
const maxCallers = 24

// Suppressions prints a suppression of Valgrind for each finding of its tools, named after the kind,
// the own function and the fingerprint. It has the names by which Valgrind knows functions: those of
// the linker, and for inlined calls those of the source. It matches if Valgrind finds the debug
// information; as a comment there is one with object files, which matches the stripped program too.
// A suppression that another one covers is left out. Errors are those of w.
func Suppressions(w io.Writer, r *Result) error {
	var all []suppression
	known := make(map[string]bool)
	wide := make(map[string][]*suppression) // those with "...", by kind
	for _, x := range r.All() {
		if x.Source != report.FromValgrind {
			continue
		}
		kind, extra := suppressionKind(x)
		if kind == "" || len(x.Traces) == 0 || len(x.Traces[0].Frames) == 0 {
			continue
		}
		s := suppression{name: suppressionName(x), kind: toolName(x.Tool) + ":" + kind, extra: extra}
		s.frames, s.objects = suppressionFrames(x.Traces[0].Frames)
		all = append(all, s)
		known[s.key(len(s.frames))] = true
	}
	b := []byte("# Suppressions of Valgrind: --suppressions=FILE. They match if Valgrind finds the debug files, such as in\n# /usr/lib/debug/.build-id.\n")
	printed := make(map[string]bool)
	for i := range all {
		if s := &all[i]; slices.Contains(s.frames, "...") && len(s.frames) <= maxWide && len(wide[s.key(0)]) < maxCovering {
			wide[s.key(0)] = append(wide[s.key(0)], s)
		}
	}
	for i := range all {
		s := &all[i]
		if key := s.key(len(s.frames)); printed[key] || s.isCovered(known) || slices.ContainsFunc(wide[s.key(0)], s.isWithin) {
			continue
		} else {
			printed[key] = true
		}
		b = s.appendBlock(append(b, '\n'), "", s.frames)
		if len(s.objects) == 0 {
			continue
		}
		b = append(b, "# The next one matches the stripped program, and hides any "+s.kind+" with calls through these files:\n"...)
		b = s.appendBlock(b, "# ", s.objects)
	}
	_, err := w.Write(b)
	return err
}

// A suppression is a block of a file of suppressions.
type suppression struct {
	name    string
	kind    string   // with the tool: Memcheck:Addr4
	extra   string   // the line after the kind; empty if there is none
	frames  []string // the innermost first
	objects []string // the same by object files, without an entry if frames has no name
}

// key returns bytes that are equal for suppressions whose first n frames are.
func (s *suppression) key(n int) string {
	return s.kind + "\n" + s.extra + "\n" + strings.Join(s.frames[:n], "\n")
}

// isCovered reports whether the frames of another suppression are the first ones of s: Valgrind
// compares as many frames as a suppression has.
func (s *suppression) isCovered(known map[string]bool) bool {
	for n := 1; n < len(s.frames); n++ {
		if known[s.key(n)] {
			return true
		}
	}
	return false
}

// Bounds of the search for suppressions that cover others: the frames of one, and the number of
// those of a kind that each is compared with.
const (
	maxWide     = 6
	maxCovering = 64
)

// isWithin reports whether another suppression matches whatever s matches.
func (s *suppression) isWithin(other *suppression) bool {
	if other == s || slices.Equal(other.frames, s.frames) {
		return false
	}
	return matchCalls(other.frames, len(s.frames), func(call string, n int) bool { return call == s.frames[n] })
}

// appendBlock appends a block, with prefix before each of its lines.
func (s *suppression) appendBlock(b []byte, prefix string, frames []string) []byte {
	line := func(indent, text string) {
		b = append(escape.AppendText(append(append(b, prefix...), indent...), text, ""), '\n')
	}
	line("", "{")
	line("   ", s.name)
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

// suppressionName returns the name of the suppression of a finding.
func suppressionName(x *report.Finding) string {
	name := x.Kind
	if f := x.Place(); f != nil && f.Named() {
		name += " " + functionOf(f)
	}
	return name + " " + x.ID()
}

// toolName returns the name of a tool in suppressions.
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
func suppressionKind(x *report.Finding) (kind, extra string) {
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

// sizeOf returns the number of "Invalid read of size 4".
func sizeOf(message string) string {
	_, size, _ := strings.Cut(message, " of size ")
	end := 0
	for end < len(size) && '0' <= size[end] && size[end] <= '9' {
		end++
	}
	return size[:end]
}

// suppressionFrames returns the lines of a stack in a suppression: names, and in objects the files in
// place of them. A run of frames of the system is "...", and the frames after the last own one are
// left out; without an own frame all are kept.
func suppressionFrames(frames []*report.TraceFrame) (names, objects []string) {
	last := len(frames) - 1
	for last >= 0 && !frames[last].IsOwn {
		last--
	}
	isOwn := func(i int) bool { return last < 0 || i < len(frames) && frames[i].IsOwn }
	if last >= 0 {
		frames = frames[:last+1]
	}
	hasName := false
	for i := range frames {
		f := frames[i]
		if !isOwn(i) {
			call := "..."
			if (i == 0 || isOwn(i-1)) && isOwn(i+1) { // one frame alone, as of malloc: "..." would hide more
				call = systemCall(f)
			}
			if len(names) == 0 || names[len(names)-1] != "..." {
				names, objects = append(names, call), append(objects, call)
			}
		} else {
			object := "obj:*"
			if f.Object != "" {
				object = "obj:*" + f.Object[max(0, strings.LastIndexByte(f.Object, '/')):]
			}
			name := object
			if fn := nativeName(f); fn != "" {
				name, hasName = "fun:"+fn, true
			}
			names = append(names, name)
			if !f.Inlined { // the function and the calls inlined into it are one frame
				objects = append(objects, object)
			}
		}
		if len(names) == maxCallers {
			break
		}
	}
	for len(names) > 1 && names[len(names)-1] == "..." {
		names = names[:len(names)-1]
	}
	if !hasName || last < 0 { // nothing but obj: of the C library would hide too much
		objects = nil
	}
	return names, objects
}

// nativeName returns the name by which Valgrind knows the function of a frame; empty if it has none.
// The arguments of templates are a wildcard, since compilers and demanglers spell them differently.
func nativeName(f *report.TraceFrame) string {
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
	if f.Linkage != "" {
		return anyVariant(f.Linkage)
	}
	return f.Func
}

// anyVariant returns the name of a constructor or destructor with a wildcard for its variant: which
// of equal ones a symbol is taken from, nobody knows.
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
func systemCall(f *report.TraceFrame) string {
	switch {
	case strings.HasPrefix(f.Func, "operator new[]"):
		return "fun:_Zna*"
	case strings.HasPrefix(f.Func, "operator new"):
		return "fun:_Znw*"
	case strings.HasPrefix(f.Func, "operator delete"):
		return "fun:_Zd*"
	case f.Inlined || f.Linkage == "" || strings.ContainsAny(f.Linkage, " (@"):
		return "..."
	}
	return "fun:" + f.Linkage
}
