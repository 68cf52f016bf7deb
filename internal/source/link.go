package source

import (
	"path/filepath"

	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/symbolize"
)

// A Linker makes links for frames. Many goroutines may use it.
type Linker struct {
	Template  *Template      // nil for no links
	Roots     Roots          // for {rel}
	PrefixMap prefixmap.Maps // maps the paths in debug information, for {path} and {rel}
}

// Append appends the URL of the source line of frame, a frame at l. frame.File is the path as
// recorded in debug information. ok is false, and dst unchanged, without a link: see
// [Template.Append]. A relative path starts at the current folder.
func (k *Linker) Append(dst []byte, l symbolize.Location, frame *symbolize.Frame) (_ []byte, ok bool) {
	if k.Template == nil || frame.File == "" || frame.Line == 0 || len(frame.File) > maxPath {
		return dst, false
	}
	f := Fields{Line: frame.Line, Column: frame.Column, BuildID: l.ID.String()}
	// a browser would change a URL with ..
	if frame.File[0] == '/' && filepath.IsLocal(frame.File[1:]) {
		f.Recorded = frame.File
	}
	path, _ := k.PrefixMap.Replace(frame.File)
	f.Rel, _ = k.Roots.Rel(path)
	if f.Path = urlPath(path); f.Path == "" {
		if abs, err := filepath.Abs(path); err == nil {
			f.Path = urlPath(filepath.ToSlash(abs))
		}
	}
	return k.Template.Append(dst, &f)
}
