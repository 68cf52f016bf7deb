package publish

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/findings"
)

// A SuppressionFile is a file of suppressions in Valgrind's form (m_errormgr.c).
type SuppressionFile struct {
	Name   string
	blocks []suppressionBlock
}

type suppressionBlock struct {
	line  int // line number of its "{"
	name  string
	tools []string
	kind  string
	extra string   // line after the kind, for some kinds
	leaks []string // from match-leak-kinds; nil: all kinds
	calls []string // fun:, obj:, src: and "...", innermost first
}

// Limits of a file of suppressions.
const (
	maxSuppressionLine  = 64 << 10 // bytes of a line
	maxSuppressionBytes = 64 << 20 // bytes of the file
)

// ReadSuppressions reads a file of suppressions. name is the file's name in messages. It fails at a
// line that Valgrind would also refuse, or if a line or the file is too long.
func ReadSuppressions(r io.Reader, name string) (*SuppressionFile, error) {
	f := &SuppressionFile{Name: name}
	in := bufio.NewScanner(io.LimitReader(r, maxSuppressionBytes+1))
	in.Buffer(make([]byte, 4<<10), maxSuppressionLine)
	number, size := 0, 0
	next := func() (string, bool) {
		for in.Scan() {
			number++
			size += len(in.Bytes()) + 1
			if text := strings.TrimSpace(in.Text()); text != "" && text[0] != '#' {
				return text, size <= maxSuppressionBytes
			}
		}
		return "", false
	}
	for {
		text, ok := next()
		if !ok {
			break
		}
		if text != "{" {
			return nil, fmt.Errorf("line %d: %.40q is not the { that begins a suppression", number, text)
		}
		b := suppressionBlock{line: number}
		if err := b.read(next); in.Err() != nil {
			break
		} else if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		f.blocks = append(f.blocks, b)
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: longer than %d KiB", number+1, maxSuppressionLine>>10)
	} else if err != nil {
		return nil, err
	}
	if size > maxSuppressionBytes {
		return nil, fmt.Errorf("larger than %d MiB", maxSuppressionBytes>>20)
	}
	return f, nil
}

func (b *suppressionBlock) read(next func() (string, bool)) error {
	errEnd := errors.New("the file ends within a suppression")
	var ok bool
	if b.name, ok = next(); !ok {
		return errEnd
	}
	text, ok := next()
	if !ok {
		return errEnd
	}
	tools, kind, ok := strings.Cut(text, ":")
	if !ok {
		return fmt.Errorf("%.40q is not TOOL:KIND", text)
	}
	b.kind = kind
	for tool := range strings.SplitSeq(tools, ",") {
		b.tools = append(b.tools, strings.TrimSpace(tool))
	}
	for first := true; ; first = false {
		text, ok := next()
		switch {
		case !ok:
			return errEnd
		case text == "}":
			if len(b.calls) == 0 {
				return errors.New("the suppression has no frames")
			}
			return nil
		case first && (kind == "Param" || kind == "FishyValue"):
			b.extra = text
		case strings.HasPrefix(text, leakKinds[:len(leakKinds)-1]):
			for word := range strings.SplitSeq(text[len(leakKinds)-1:], ",") {
				b.leaks = append(b.leaks, strings.TrimSpace(word))
			}
		case text == "...", strings.HasPrefix(text, "fun:"), strings.HasPrefix(text, "obj:"), strings.HasPrefix(text, "src:"):
			if len(b.calls) == maxCallers {
				return fmt.Errorf("the suppression has more than %d frames", maxCallers)
			}
			b.calls = append(b.calls, text)
		default:
			return fmt.Errorf("%.40q does not begin with fun:, obj: or src:, and is not \"...\"", text)
		}
	}
}

// PrintUnneeded prints the suppressions of f that no finding needed and no report lists as used.
// Each line has the file, the line number and the name. PrintUnneeded fails only if w does.
func (f *SuppressionFile) PrintUnneeded(w io.Writer, r *Result) error {
	needed := make([]bool, len(f.blocks))
	byKind := make(map[string][]int)
	for i := range f.blocks {
		b := &f.blocks[i]
		needed[i] = r.UsedSuppression(b.name)
		if !needed[i] {
			byKind[b.kind] = append(byKind[b.kind], i)
		}
	}
	for _, x := range r.All() {
		if x.Source != findings.FromValgrind || len(x.Traces) == 0 {
			continue
		}
		kind, extra := suppressionKind(x)
		for _, i := range byKind[kind] {
			needed[i] = needed[i] || f.blocks[i].matches(r, toolName(x.Tool), extra, x.Traces[0].Frames)
		}
	}
	var b []byte
	for i := range f.blocks {
		if !needed[i] {
			b = escape.AppendText(b, fmt.Sprintf("%s:%d: %s", f.Name, f.blocks[i].line, f.blocks[i].name), "")
			b = append(b, ": no error needs this suppression\n"...)
		}
	}
	_, err := w.Write(b)
	return err
}

func (b *suppressionBlock) matches(r *Result, tool, extra string, frames []*findings.TraceFrame) bool {
	if !slices.Contains(b.tools, tool) {
		return false
	}
	if leak, is := strings.CutPrefix(extra, leakKinds); is {
		if b.leaks != nil && !slices.Contains(b.leaks, leak) && !slices.Contains(b.leaks, "all") {
			return false
		}
	} else if b.extra != "" && !matchesGlob(b.extra, extra) && extra != "*" {
		return false
	}
	return matchCalls(b.calls, len(frames), func(call string, n int) bool { return matchesFrame(r, call, frames[n]) })
}

// matchCalls reports whether the frame lines of a suppression match the beginning of a stack. calls
// has the lines, and the stack has n frames. The line "..." matches any number of frames. Any other
// line matches the frame with index i if matches(line, i) is true.
func matchCalls(calls []string, n int, matches func(call string, n int) bool) bool {
	if first := calls[0]; first != "..." && (n == 0 || !matches(first, 0)) {
		return false // most suppressions fail here
	}
	at, next := make([]bool, n+1), make([]bool, n+1) // at[i]: the lines so far match i frames
	at[0] = true
	for _, call := range calls {
		clear(next)
		some := false
		for i, is := range at {
			if call == "..." {
				some = some || is
				next[i] = some
			} else if is && i < n && matches(call, i) {
				next[i+1], some = true, true
			}
		}
		if !some {
			return false
		}
		at, next = next, at
	}
	return true
}

func matchesFrame(r *Result, call string, f *findings.TraceFrame) bool {
	what, pattern := call[:4], call[4:]
	switch what {
	case "obj:":
		return matchesGlob(pattern, f.Object)
	case "src:":
		file, line := f.File, fmt.Sprint(f.Line)
		if i := strings.LastIndexByte(pattern, ':'); i > 0 {
			if pattern[i+1:] != line {
				return false
			}
			pattern = pattern[:i]
		}
		return file != "" && (matchesGlob(pattern, file) || matchesGlob(pattern, path.Base(file)))
	}
	for _, name := range []string{nativeName(r, f), r.Linkage(f), f.Func, allocator(f.Func)} {
		if name != "" && (matchesGlob(pattern, name) || strings.HasSuffix(name, "<*") && strings.HasPrefix(pattern, name[:len(name)-1])) {
			return true
		}
	}
	return false
}

// allocator returns the linkage name of an operator that allocates or frees memory, from its
// demangled name, or "". Reports have only the demangled names of operators that Valgrind replaces.
func allocator(name string) string {
	for _, a := range [...]struct{ name, link string }{
		{"operator new[](", "_Znam"}, {"operator new(", "_Znwm"}, {"operator delete[](", "_ZdaPv"}, {"operator delete(", "_ZdlPv"},
	} {
		if strings.HasPrefix(name, a.name) {
			return a.link
		}
	}
	return ""
}

// matchesGlob reports whether a pattern, in which * is any text and ? any byte, matches all of s.
func matchesGlob(pattern, s string) bool {
	star, from := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0: // let the last star match one byte more
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
