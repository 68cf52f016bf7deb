package follow

import (
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// files are the open files of a source.
type files struct {
	old   []*generation // files before cur, the oldest first, kept open for late lines
	cur   *generation   // the current file; nil: none
	ahead []*generation // unread files after cur, the oldest first
}

// newest returns the youngest file of the source, or nil.
func (f *files) newest() *generation {
	if n := len(f.ahead); n > 0 {
		return f.ahead[n-1]
	}
	return f.cur
}

// held returns all files of the source, in the order of their lines.
func (f *files) held() []*generation {
	all := f.reading()
	return append(all, f.ahead...)
}

// reading returns the rotated files and the current file, the oldest first.
func (f *files) reading() []*generation {
	all := slices.Clone(f.old)
	if f.cur != nil {
		all = append(all, f.cur)
	}
	return all
}

// attentive reports whether the files before the current one may get late lines.
func (f *files) attentive() bool {
	return slices.ContainsFunc(f.old, func(g *generation) bool { return time.Since(g.moved) < linger })
}

// has reports whether the source holds the file with this ID.
func (f *files) has(id lineage.ID) bool {
	return slices.ContainsFunc(f.held(), func(g *generation) bool { return g.id == id })
}

// isUnopened reports whether path leads to a file that the source does not hold. Such a file is not
// lost: it cannot be opened now, or another source follows it.
func (f *files) isUnopened(path string) bool {
	id, info, err := lookAt(path)
	return err == nil && info.Mode().IsRegular() && !f.has(id)
}

func (f *files) rename(all []lineage.File) {
	for _, g := range f.held() {
		for _, c := range all {
			if c.ID == g.id {
				g.name, g.realPath = c.Path, c.Of
			}
		}
	}
}

// makeRoom closes files if too many are open. Removed files stay open, since they could not be
// reopened.
func (f *files) makeRoom(d *disk) {
	if !d.crowded() {
		return
	}
	for _, g := range f.held() {
		// an archive whose decoder is closed would be unpacked again
		if !g.unlinked && (g.contents == nil || g.contents.r == nil) {
			g.Close()
		}
	}
}

// written returns the offset in the output after the last byte of the files.
func (f *files) written() (pos int64) {
	for _, g := range f.reading() {
		if g.out != nil {
			pos = max(pos, g.out.written())
		}
	}
	return pos
}

func (f *files) progress() progress {
	p := progress{exists: f.cur != nil}
	for _, g := range f.held() {
		p.rest += max(0, p.size-p.off) // unread bytes of the file before g
		p.newest, p.off, p.size = g.id, g.off, g.size
	}
	return p
}

func (f *files) close() { closeAll(f.reading()) }
