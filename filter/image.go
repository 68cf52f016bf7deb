package filter

import (
	"path"
	"strings"

	"github.com/symfilter/symfilter/dialect"
)

const maxImages = 1024 // files that a trace may name

// open returns the file for the module of a frame: the one that the operator names for it, or the
// one at its path.
func (t *tracer) open(f *dialect.Frame) *dialect.Image {
	name := f.Module
	if !f.ID.IsZero() {
		return t.identified(f)
	}
	for i := range t.opt.Images {
		g := &t.opt.Images[i]
		if !g.isFor(name) {
			continue
		}
		m := t.named(g.Path)
		m.Given, m.Base, m.HasBase = true, g.Base, g.HasBase
		return m
	}
	if !strings.HasPrefix(name, "/") {
		if mapped := t.reader.Facts().PathOf(path.Base(name)); mapped != "" {
			name = mapped
		}
	}
	return t.named(name)
}

// isFor reports whether the operator has named g for a module of this name.
func (g *Image) isFor(module string) bool {
	return g.Name == "" && module == "" || g.Name != "" && (g.Name == module || path.Base(module) == g.Name)
}

// named returns the file at a path.
func (t *tracer) named(path string) *dialect.Image {
	o := t.objects.Named(path)
	m := &dialect.Image{Path: o.Path, ID: o.ID, File: o.Image, Err: o.Err}
	if o.Err == nil {
		m.Segments, m.Fixed = o.Image.Segments(), o.Fixed
	}
	return m
}

// identified returns the file of a module whose build ID is known, from which ever place it comes.
func (t *tracer) identified(f *dialect.Frame) *dialect.Image {
	m := t.locator.module(f.Module, f.ID)
	l, err := t.f.askLayout(m)
	return &dialect.Image{Path: f.Module, ID: f.ID, Err: err, Segments: l.Segments, Fixed: l.Fixed}
}
