package bundle

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/wording"
)

// Bounds of the text for a log. A typical log has the stacks of three threads, with 64 frames
// each. A comment on GitHub has at most 64 KiB.
const (
	maxLines   = 200
	maxLine    = 240 // bytes printed of a line
	maxBefore  = 60  // bytes printed before the frame, if the line is longer
	maxModules = 100
	maxReasons = 10 // reasons listed for a dialect
)

// A Log is a [filter.Printer] that prints nothing. It collects the modules of a log, the
// numbers of its frames, and the shapes of lines with unnamed frames. Several filters may share
// one Log.
type Log struct {
	mu       sync.Mutex
	dialects map[string]*frameCounts
	modules  map[moduleKey]*loaded
	lines    []shape
	left     int // lines beyond maxLines
}

var _ filter.Printer = (*Log)(nil)

// frameCounts counts the frames of a dialect: those with a name, those without, and the latter by
// reason.
type frameCounts struct {
	named, unnamed int
	reasons        map[string]int
}

// A moduleKey identifies a module of the log by its base name and its build ID.
type moduleKey struct {
	name string
	id   buildid.ID
}

// A loaded has the range of memory that all maps of a module in the log cover together. high is the
// last address of the range.
type loaded struct {
	low, high uint64
	maps      int
}

// A shape is a line with its text masked.
type shape struct {
	number int64
	text   string
}

// AppendElement records the element's module, if any, and counts its answers as named or unnamed.
// It appends the address, frame number, build ID and module name of each unnamed answer.
func (l *Log) AppendElement(dst []byte, e *filter.Element) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Module != nil {
		l.addModule(e.Module)
	}
	if e.Answer != nil {
		dst = l.appendAnswer(dst, e.Answer)
	}
	for i := range e.Values {
		if v := &e.Values[i]; v.Answer != nil {
			dst = l.appendAnswer(dst, v.Answer)
		}
	}
	return dst
}

func (l *Log) addModule(m *filter.ElementModule) {
	key := moduleKey{shownName(m.Name), m.ID}
	at := l.modules[key]
	if at == nil {
		if len(l.modules) >= maxModules {
			return
		}
		if l.modules == nil {
			l.modules = make(map[moduleKey]*loaded)
		}
		at = &loaded{low: math.MaxUint64}
		l.modules[key] = at
	}
	for _, v := range m.Maps {
		at.low, at.high = min(at.low, v.Start), max(at.high, v.End)
		at.maps++
	}
}

// appendAnswer counts an answer as named or unnamed. For an unnamed answer, it appends the address,
// frame number, build ID and module name, which known.add reads.
func (l *Log) appendAnswer(dst []byte, r *filter.Resolved) []byte {
	name := cmp.Or(r.Dialect, "markup")
	c := l.dialects[name]
	if c == nil {
		if l.dialects == nil {
			l.dialects = make(map[string]*frameCounts)
		}
		c = &frameCounts{reasons: make(map[string]int)}
		l.dialects[name] = c
	}
	if len(r.Frames) > 0 || r.Variable != nil {
		c.named++
		return dst
	}
	c.unnamed++
	reason := "no symbol covers the address"
	if r.Err != nil {
		reason = r.Err.Error()
	}
	if _, ok := c.reasons[reason]; ok || len(c.reasons) < maxReasons {
		c.reasons[reason]++
	}
	for _, n := range []uint64{r.Addr, r.Lookup, r.Offset, r.Logged} {
		dst = fmt.Appendf(dst, "n%d\n", n)
	}
	if r.Frame != filter.NoNumber {
		dst = fmt.Appendf(dst, "f%d\n", r.Frame)
	}
	if !r.ID.IsZero() {
		dst = fmt.Appendf(dst, "i%s\n", r.ID)
	}
	if isFile(r.Module) {
		dst = fmt.Appendf(dst, "m%s\n", baseName(r.Module))
	}
	return dst
}

// add reads the fields that appendAnswer has appended, and adds their numbers and names to k.
func (k *known) add(appended []byte) {
	for field := range strings.Lines(string(appended)) {
		value := strings.TrimSuffix(field[1:], "\n")
		switch n, _ := strconv.ParseUint(value, 10, 64); field[0] {
		case 'n':
			k.addNumber(n)
		case 'f':
			k.frames = append(k.frames, n)
		case 'i':
			k.ids = append(k.ids, value)
		case 'm':
			k.names = append(k.names, value)
		}
	}
}

// AppendLine keeps the shape of a line with an unnamed address, for up to maxLines lines. It
// appends nothing.
func (l *Log) AppendLine(dst []byte, line *filter.Line) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	var k known
	unnamed := false
	for i := range line.Elements {
		if appended := line.Elements[i].Appended; len(appended) > 0 {
			unnamed = true
			k.add(appended)
		}
	}
	switch {
	case !unnamed:
	case len(l.lines) >= maxLines:
		l.left++
	default:
		text, before, after := string(line.Text), "", ""
		if len(text) > maxLine { // the frame may be after a long text
			if at := k.firstKnown(text) - maxBefore; at > 0 {
				text, before = text[at:], "(cut) ... "
			}
			if len(text) > maxLine {
				text, after = text[:maxLine], " ... (cut)"
			}
		}
		l.lines = append(l.lines, shape{line.Number, before + string(k.appendShape(nil, text)) + after})
	}
	return dst
}

// PrintTo prints the collected facts after the lines of r. Reasons are redacted, since they may
// have paths.
func (l *Log) PrintTo(r *Redactor) {
	w := r.w
	r.endFindings()
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(w, "modules that the log lists as markup")
	printNone(w, len(l.modules))
	for _, key := range slices.SortedFunc(maps.Keys(l.modules), func(a, b moduleKey) int {
		return cmp.Or(cmp.Compare(l.modules[a].low, l.modules[b].low), strings.Compare(a.name, b.name), strings.Compare(a.id.String(), b.id.String()))
	}) {
		fmt.Fprintf(w, "  %s (BuildID=%s)", key.name, key.id)
		if at := l.modules[key]; at.maps > 0 {
			fmt.Fprintf(w, " 0x%x-0x%x, %d bytes in %s", at.low, at.high, at.high-at.low+1, wording.Count(int64(at.maps), "map", "maps"))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "frames and addresses, by dialect")
	printNone(w, len(l.dialects))
	for _, name := range slices.Sorted(maps.Keys(l.dialects)) {
		c := l.dialects[name]
		fmt.Fprintf(w, "  %s: %d with a name, %d without\n", name, c.named, c.unnamed)
		for _, reason := range slices.SortedFunc(maps.Keys(c.reasons), func(a, b string) int {
			return cmp.Or(cmp.Compare(c.reasons[b], c.reasons[a]), strings.Compare(a, b))
		}) {
			fmt.Fprintf(w, "    %d: %s\n", c.reasons[reason], r.Redact(wording.Line(reason)))
		}
	}
	fmt.Fprintln(w, "lines with an unresolved address, by line number; x and 0 replace private text")
	printNone(w, len(l.lines))
	for _, s := range l.lines {
		fmt.Fprintf(w, "  %d: %s\n", s.number, s.text)
	}
	if l.left > 0 {
		fmt.Fprintf(w, "  and %s\n", wording.Count(int64(l.left), "more line", "more lines"))
	}
}

// printNone prints "none" for a section with n entries if n is 0.
func printNone(w io.Writer, n int) {
	if n == 0 {
		fmt.Fprintln(w, "  none")
	}
}
