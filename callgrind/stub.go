package callgrind

import (
	"github.com/symfilter/symfilter/markup"
	"io"
)

type rewriter struct {
	printer *printer
	m       *model
	s       *symbols
}

func (w *rewriter) header(rec *Record)                    {}
func (w *rewriter) part()                                 {}
func (t *listing) sources()                               {}
func NewMarkup(dst markup.Sink, o Options) io.WriteCloser { return nil }
