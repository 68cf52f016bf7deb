package callgrind

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/source"
	"github.com/symfilter/symfilter/internal/stacks"
)

const usualAround = 3 // lines around each line with costs, unless Options.Around is set

// A sourceLine holds the costs of a line of a source file.
type sourceLine struct {
	line  uint32
	costs []int64
	calls []uint32 // indexes of the calls from the line
}

// sources prints source files with the costs of their lines, highest cost first. It prints at
// most maxSources files.
func (t *listing) sources() {
	g, m := t.g, t.g.m
	lines := make(map[nameID]map[uint32]*sourceLine)
	totals := make(map[nameID]int64)
	at := func(i uint32) *sourceLine {
		file, line := g.file[i], g.line[i]
		if g.isUnknown(file) {
			return nil
		}
		of := lines[file]
		if of == nil {
			of = make(map[uint32]*sourceLine)
			lines[file] = of
		}
		l := of[line]
		if l == nil {
			l = &sourceLine{line: line, costs: make([]int64, g.width)}
			of[line] = l
		}
		return l
	}
	for i := range m.costs.keys {
		if l := at(uint32(i)); l != nil {
			stacks.AddTo(l.costs, m.costs.countsOf(i))
			if len(t.sorting) > 0 {
				totals[g.file[i]] = stacks.Plus(totals[g.file[i]], t.sorting[0].value(m.costs.countsOf(i)))
			}
		}
	}
	for i := range m.calls.keys {
		if l := at(m.calls.keys[i].from); l != nil {
			l.calls = append(l.calls, uint32(i))
		}
	}
	files := slices.SortedFunc(maps.Keys(lines), func(a, b nameID) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(m.r.Text(a), m.r.Text(b)))
	})
	roots := t.o.sourceRoots()
	defer roots.Close()
	var missing, outside []nameID
	shown := 0
	var all, sum int64
	for _, n := range totals {
		all = stacks.Plus(all, n)
	}
	for _, f := range files {
		if float64(sum)*100 >= float64(all)*t.threshold() && t.threshold() < 100 {
			break
		}
		sum = stacks.Plus(sum, totals[f])
		text, _, err := readSource(roots, t.o.report().Place(t.g.m.r.Text(f)))
		switch {
		case errors.Is(err, source.ErrOutside):
			outside = append(outside, f)
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			t.o.report().Report("--source: " + err.Error())
			fallthrough
		case err != nil || shown == maxSources:
			missing = append(missing, f)
			continue
		}
		shown++
		t.source(f, text, lines[f], totals[f])
		t.send()
	}
	t.unshown("Source files that are missing:", missing, totals, all)
	t.unshown("Source files outside of "+roots.String()+", not opened (--source-root names their folder):", outside, totals, all)
}

// sourceRoots opens SourceRoots, or the current folder, and the targets of the prefix maps. It
// reports source roots that cannot be opened.
func (o *Options) sourceRoots() source.Roots {
	named := o.SourceRoots
	if len(named) == 0 {
		named = []string{"."}
	}
	all, err := source.OpenRoots(named)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			o.report().Report("--source: " + line)
		}
	}
	var targets []string
	for _, m := range o.PrefixMap {
		if m.New != "" {
			targets = append(targets, m.New)
		}
	}
	mapped, _ := source.OpenRoots(targets) // the target of a prefix map need not be a folder
	return append(all, mapped...)
}

// unshown prints heading, and below it the source files whose lines are not printed, with their
// shares of all.
func (t *listing) unshown(heading string, files []nameID, totals map[nameID]int64, all int64) {
	if len(files) == 0 {
		return
	}
	t.b = append(t.b, '\n')
	t.put(faint, string(escape.AppendText(nil, heading, ""))+"\n")
	for _, f := range files {
		t.b = append(escape.AppendText(append(t.b, "  "...), t.g.s.file(f), ""), share(totals[f], all)...)
		t.b = append(t.b, '\n')
		t.send()
	}
}

// readSource returns the text and the path of a source file below one of the roots. It fails if the
// file is too large.
func readSource(roots source.Roots, path string) (text []byte, at string, err error) {
	file, err := roots.Open(path, "the profile")
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	if file.Size() > maxSource {
		return nil, "", errors.New(file.Path() + ": too large to show")
	}
	b := make([]byte, file.Size())
	n, err := file.ReadAt(b, 0)
	if n < len(b) {
		return nil, "", err
	}
	return b, file.Path(), nil
}

// source prints a source file with the costs of its lines.
func (t *listing) source(f nameID, text []byte, costs map[uint32]*sourceLine, total int64) {
	t.b = append(t.b, '\n')
	t.put(bold, string(escape.AppendText(nil, t.g.s.file(f), "")))
	if len(t.sorting) > 0 {
		t.put(faint, "  "+commas(total)+" "+string(escape.AppendText(nil, t.sorting[0].name, ""))+share(total, t.sorting[0].value(t.g.total)))
	}
	t.b = append(t.b, '\n')
	number := t.linesNear(text, func(n uint32) bool { return costs[n] != nil }, func(n uint32, line []byte) { t.line(n, costs[n], line) })
	beyond := make([]int64, t.g.width)
	for line, c := range costs {
		if line > number || line == 0 {
			stacks.AddTo(beyond, c.costs)
		}
	}
	if !isZero(beyond) {
		t.costs(beyond)
		t.put(faint, "       (unknown lines, or lines beyond the end of the file: the file may have changed)\n")
	}
}

// linesNear calls show for each line that chosen selects, and for Options.Around lines before and
// after each of them. Where it skips lines, it prints a heading with the number of the next line.
// It returns the number of lines in text.
func (t *listing) linesNear(text []byte, chosen func(number uint32) bool, show func(number uint32, line []byte)) (number uint32) {
	around := uint32(usualAround)
	if n := t.o.Around; n != 0 {
		around = uint32(max(n, 0))
	}
	last := uint32(0)
	for line := range bytes.Lines(text) {
		number++
		near := chosen(number)
		for d := uint32(1); d <= around && !near; d++ {
			near = number > d && chosen(number-d) || chosen(number+d)
		}
		if !near {
			continue
		}
		if last+1 != number {
			t.put(faint, "-- line "+strconv.FormatUint(uint64(number), 10)+"\n")
		}
		last = number
		show(number, bytes.TrimRight(line, "\r\n"))
	}
	return number
}

// numbered prints a line of a source file after its number.
func (t *listing) numbered(number uint32, line []byte) {
	digits := strconv.FormatUint(uint64(number), 10)
	t.pad(6 - len(digits))
	t.put(faint, digits+" ")
	t.b = append(escape.AppendText(t.b, string(expand(line[:min(len(line), maxSourceLine)])), ""), '\n')
}

// costs prints a line's costs in the columns. It leaves out the first column if that is inclusive,
// and prints blanks for a cost of 0. costs is nil for a line without costs.
func (t *listing) costs(costs []int64) {
	for i := range t.columns {
		c := &t.columns[i]
		if c.inclusive && i == 0 {
			continue
		}
		if costs == nil || c.value(costs) == 0 {
			t.pad(c.width + shareWidth)
		} else {
			t.number(c, c.value(costs), plain)
		}
		t.b = append(t.b, "  "...)
	}
}

// line prints a line, and the functions called from it.
func (t *listing) line(number uint32, l *sourceLine, text []byte) {
	if l == nil {
		t.costs(nil)
	} else {
		t.costs(l.costs)
	}
	t.numbered(number, text)
	if l == nil {
		return
	}
	g, m := t.g, t.g.m
	to := make(map[uint32]int)
	type called struct {
		node  uint32
		count int64
		costs []int64
	}
	var all []called
	for _, i := range l.calls {
		n := g.ofFunction[m.calls.keys[i].to]
		at, ok := to[n]
		if !ok {
			at = len(all)
			to[n] = at
			all = append(all, called{node: n, costs: make([]int64, g.width)})
		}
		c := m.calls.countsOf(int(i))
		all[at].count = stacks.Plus(all[at].count, c[0])
		stacks.AddTo(all[at].costs, c[1:])
		g.limit(all[at].costs, g.ofPlace[m.calls.keys[i].from], n)
	}
	slices.SortFunc(all, func(a, b called) int {
		if len(t.sorting) > 0 {
			if c := cmp.Compare(t.sorting[0].value(b.costs), t.sorting[0].value(a.costs)); c != 0 {
				return c
			}
		}
		return g.compare(a.node, b.node)
	})
	for _, c := range all {
		t.costs(c.costs)
		t.put(faint, "       => "+string(escape.AppendText(nil, g.titleInCycle(c.node), ""))+"  ("+commas(c.count)+"×)\n")
	}
}

// expand replaces tabs by blanks, up to multiples of eight columns.
func expand(line []byte) []byte {
	if bytes.IndexByte(line, '\t') < 0 {
		return line
	}
	var b []byte
	for _, c := range line {
		if c != '\t' {
			b = append(b, c)
			continue
		}
		b = append(b, "        "[len(b)%8:]...)
	}
	return b
}
