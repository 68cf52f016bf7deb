package follow

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/symfilter/symfilter/internal/lineage"
)

// State implements [lineage.Content].
func (g *generation) State() lineage.State {
	s := lineage.State{
		File: lineage.File{Path: g.name, ID: g.id, ModTime: g.mtime, Size: g.size, Of: g.realPath},
		Head: g.head, Off: g.off, Look: g.look, Recent: g.recent, Opaque: g.newline() == nil,
	}
	if c := g.contents; c != nil {
		s.Packed, s.Length, s.Damaged = true, c.size, c.err != nil
	}
	return s
}

// content returns g, or a nil interface if g is nil.
func (g *generation) content() lineage.Content {
	if g == nil {
		return nil
	}
	return g
}

func contentsOf(all []*generation) (of []lineage.Content) {
	for _, g := range all {
		of = append(of, g)
	}
	return of
}

// fileOf returns c as a generation, or nil if c is nil.
func fileOf(c lineage.Content) *generation {
	g, _ := c.(*generation)
	return g
}

// startAt sets the read offset to the beginning of step, whose file is g.
func (g *generation) startAt(step lineage.Step) {
	g.off, g.look, g.recent = step.From, step.From, step.Recent
}

// started returns the files of the steps, with their read offsets set.
func started(steps []lineage.Step) (all []*generation) {
	for _, step := range steps {
		g := fileOf(step.Content)
		g.startAt(step)
		all = append(all, g)
	}
	return all
}

// An opener opens the files that a search compares.
type opener struct{ s *search }

// Open implements [lineage.Opener].
func (o opener) Open(f lineage.File) (lineage.Content, error) {
	open := o.s.f.disk.openGeneration
	if f.Packed {
		open = func(string) (*generation, error) { return o.s.openArchive(f) }
	}
	g, err := open(f.Path)
	switch {
	case tooMany(err):
		return nil, lineage.ErrLater
	case err != nil:
		return nil, err
	}
	return g, nil
}

// Look implements [lineage.Opener].
func (o opener) Look(c lineage.Content) (lineage.State, error) {
	g := fileOf(c)
	head := make([]byte, lineage.HeadSize)
	n, err := g.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return lineage.State{}, err
	}
	info, err := g.Stat()
	if err != nil {
		return lineage.State{}, err
	}
	s := g.State()
	s.Head, s.Size, s.ModTime = head[:n], info.Size(), info.ModTime()
	return s, nil
}

// Keep implements [lineage.Opener].
func (o opener) Keep(c lineage.Content, f lineage.File) bool {
	g := fileOf(c)
	g.realPath = f.Of
	if g.contents != nil {
		if o.s.mayGrow(g) {
			return false
		}
		g.contents.release()
	}
	g.closeIfCrowded()
	return true
}

var errNothing = errors.New("an empty archive")

// openArchive opens an archive. The error is lineage.ErrLater if the archive may be complete later,
// or if another file is at its path now.
func (s *search) openArchive(f lineage.File) (*generation, error) {
	g, err := s.f.disk.openPacked(f.Path)
	switch {
	case isReplaced(f, g): // err is not an error of f
		closeAll([]*generation{g})
		s.attention = true
		return nil, lineage.ErrLater
	case isDamage(err):
		defer g.Close()
		if s.mayGrow(g) {
			return nil, lineage.ErrLater
		}
		s.damaged(g, err)
		s.lineage.LeaveOut(f)
		return nil, err
	case errors.Is(err, errForeignPacking):
		s.foreign = filepath.Base(f.Path)
		return nil, err
	case err != nil:
		s.attention = true
		if tooMany(err) || s.f.disk.ctx.Err() != nil {
			return nil, lineage.ErrLater
		}
		return nil, err
	case len(g.head) == 0:
		g.Close()
		return nil, errNothing
	case s.mayGrow(g):
		g.Close()
		return nil, lineage.ErrLater
	}
	return g, nil
}

// isReplaced reports whether f is not at its path any more, or has changed since it was listed.
// opened is the file that was opened at the path, or nil.
func isReplaced(f lineage.File, opened *generation) bool {
	if opened != nil { // another file may have the same inode
		return opened.id != f.ID || !opened.mtime.Equal(f.ModTime)
	}
	now, err := siblingAt(f.Path)
	return err == nil && now.ID != f.ID || errors.Is(err, fs.ErrNotExist) || errors.Is(err, lineage.ErrIrregular)
}

// IsArchive reports whether a followed file has the name of a compressed file, rotated or not.
// Files with other names hold lines, whatever their first bytes are.
func IsArchive(name string) bool { return lineage.IsArchive(name) }
