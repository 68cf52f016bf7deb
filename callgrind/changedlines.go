package callgrind

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/source"
	"github.com/symfilter/symfilter/internal/stacks"
)

// A changedFile is a source file with the costs of its lines on both sides.
type changedFile struct {
	name  string // as shown, after the substitutions
	paths [2][]string
	lines map[uint32]*[2][]int64
	size  float64 // sum of the changes of its lines
	moved bool    // a function begins at different lines on the two sides
	one   bool    // both sides name the same file, which may have changed between the builds
}

// maxVersions bounds the files of one side that get the same name by substitutions.
const maxVersions = 4

// sources prints the changed lines of source files, largest changes first. It shows only files
// with the same text on both sides.
func (t *changeTable) sources() {
	files := t.changedFiles()
	roots := t.o.sourceRoots()
	defer roots.Close()
	all, sum := 0.0, 0.0
	for _, f := range files {
		all += f.size
	}
	threshold := cmp.Or(t.o.Threshold, defaultThreshold)
	refused := make(map[string][]*changedFile)
	shown := 0
	for _, f := range files {
		if threshold < 100 && sum*100 >= all*threshold {
			break
		}
		sum += f.size
		text, reason := t.commonText(roots, f)
		if reason == "" && shown == maxSources {
			reason = "with smaller changes, not shown:"
		}
		if reason != "" {
			refused[reason] = append(refused[reason], f)
			continue
		}
		shown++
		t.source(f, text)
		t.send()
	}
	for _, reason := range slices.Sorted(maps.Keys(refused)) {
		t.b = append(t.b, '\n')
		t.put(faint, string(escape.AppendText(nil, "Source files "+reason, ""))+"\n")
		for _, f := range refused[reason] {
			t.b = append(escape.AppendText(append(t.b, "  "...), f.name, ""), '\n')
			t.send()
		}
	}
}

// changedFiles returns the files in which the cost of a line changed.
func (t *changeTable) changedFiles() []*changedFile {
	byName := make(map[string]*changedFile)
	for i, s := range t.c.sides {
		g := s.g
		named := make(map[nameID]*changedFile)
		of := func(file nameID) *changedFile {
			f := named[file]
			if f == nil {
				name := rewrite(t.o.FileNames, g.s.file(file))
				if f = byName[name]; f == nil {
					f = &changedFile{name: name, lines: make(map[uint32]*[2][]int64)}
					byName[name] = f
				}
				named[file] = f
				if path := t.o.report().Place(g.m.r.Text(file)); len(f.paths[i]) < maxVersions && !slices.Contains(f.paths[i], path) {
					f.paths[i] = append(f.paths[i], path)
				}
			}
			return f
		}
		for k := range g.m.costs.keys {
			if g.isUnknown(g.file[k]) {
				continue
			}
			f := of(g.file[k])
			l := f.lines[g.line[k]]
			if l == nil {
				l = &[2][]int64{make([]int64, t.c.sides[0].g.width), make([]int64, t.c.sides[1].g.width)}
				f.lines[g.line[k]] = l
			}
			stacks.AddTo(l[i], g.m.costs.countsOf(k))
		}
	}
	t.findMoved(byName)
	var all []*changedFile
	for _, f := range byName {
		for _, l := range f.lines {
			f.size += float64(distance(t.ofLine(l, &t.sorting[0])))
		}
		if f.size > 0 {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *changedFile) int {
		return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(a.name, b.name))
	})
	return all
}

// findMoved sets moved for each file with a function that begins at different lines on the two
// sides.
func (t *changeTable) findMoved(files map[string]*changedFile) {
	for i := range t.c.rows {
		r := &t.c.rows[i]
		if r.before < 0 || r.after < 0 {
			continue
		}
		x, y := t.c.sides[0].g, t.c.sides[1].g
		a, b := &x.all[r.before], &y.all[r.after]
		if x.calls[r.before] == 0 || y.calls[r.after] == 0 || a.line == b.line || a.line == 0 || b.line == 0 {
			continue
		}
		name := rewrite(t.o.FileNames, y.s.file(b.file))
		if f := files[name]; f != nil && name == rewrite(t.o.FileNames, x.s.file(a.file)) {
			f.moved = true
		}
	}
}

func (t *changeTable) ofLine(l *[2][]int64, p *pair) (before, after int64) {
	return p[0].value(l[0]), p[1].value(l[1])
}

// commonText returns the text of a file that is the same on both sides, or the reason why there is
// none. A file with one path on both sides may have changed between the builds: a function that
// begins at another line proves a change.
func (t *changeTable) commonText(roots source.Roots, f *changedFile) (text []byte, reason string) {
	if len(f.paths[0]) == 0 || len(f.paths[1]) == 0 {
		return nil, "in one profile only (--mod-filename can make names equal):"
	}
	paths := append(slices.Clone(f.paths[0]), f.paths[1]...)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	first := ""
	f.one = true
	for i, path := range paths {
		other, at, err := readSource(roots, path)
		if i == 0 {
			first = at
		}
		f.one = f.one && at == first
		switch {
		case errors.Is(err, source.ErrOutside):
			return nil, "outside of " + roots.String() + ", not opened (--source-root names their folder):"
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			t.o.report().Report("--source: " + err.Error())
			fallthrough
		case err != nil:
			return nil, "that are missing:"
		case i > 0 && !bytes.Equal(text, other):
			return nil, "that differ between the two profiles:"
		}
		text = other
	}
	if f.one && f.moved {
		return nil, "that changed, since functions begin at other lines:"
	}
	return text, ""
}

// source prints the lines of a file with changed costs, and the lines around them.
func (t *changeTable) source(f *changedFile, text []byte) {
	var columns []changeColumn
	for _, p := range t.shown {
		for which, heading := range [...]string{costBefore: p[1].name + " before", costAfter: "after", difference: "change"} {
			col := changeColumn{pair: p, which: uint8(which), heading: heading}
			for _, l := range f.lines {
				number, share := col.text(t.ofLine(l, &p))
				col.numbers, col.shares = max(col.numbers, len(number)), max(col.shares, len(share))
			}
			columns = append(columns, col)
		}
	}
	whole := t.columns
	t.columns = columns
	defer func() { t.columns = whole }()
	t.b = append(t.b, '\n')
	t.put(bold, string(escape.AppendText(nil, f.name, "")))
	if f.one {
		t.put(faint, "  (current text of the file, used for both profiles)")
	}
	t.b = append(t.b, '\n')
	for i := range t.columns {
		heading := string(escape.AppendText(nil, t.columns[i].heading, ""))
		t.pad(t.columns[i].width() - utf8.RuneCountInString(heading))
		t.put(faint, heading)
		t.b = append(t.b, "  "...)
	}
	t.put(faint, "  line\n")
	changed := func(line uint32) bool {
		l := f.lines[line]
		return l != nil && slices.ContainsFunc(t.shown, func(p pair) bool {
			before, after := t.ofLine(l, &p)
			return before != after
		})
	}
	number := t.linesNear(text, changed, func(n uint32, line []byte) {
		t.numbers(f.lines[n])
		t.numbered(n, line)
	})
	beyond := &[2][]int64{make([]int64, t.c.sides[0].g.width), make([]int64, t.c.sides[1].g.width)}
	for line, l := range f.lines {
		if line > number || line == 0 {
			stacks.AddTo(beyond[0], l[0])
			stacks.AddTo(beyond[1], l[1])
		}
	}
	if !isZero(beyond[0]) || !isZero(beyond[1]) {
		t.numbers(beyond)
		t.put(faint, "       (unknown lines, or lines beyond the end of the file: the file may have changed)\n")
	}
}

// numbers prints the columns of a line, or blanks if l is nil.
func (t *changeTable) numbers(l *[2][]int64) {
	for i := range t.columns {
		col := &t.columns[i]
		if l == nil {
			t.pad(col.width() + 2)
			continue
		}
		before, after := t.ofLine(l, &col.pair)
		t.cell(col, before, after)
	}
}
