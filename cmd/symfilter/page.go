package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"

	"github.com/symfilter/symfilter/filter"
)

// newPage returns the page of --output=html for files, or nil with other outputs.
func (c *config) newPage(files []string) *filter.Page {
	if c.output != outputHTML {
		return nil
	}
	title := standardName
	if len(files) > 0 && files[0] != "-" {
		title = filepath.Base(files[0])
	}
	if len(files) > 1 {
		title += fmt.Sprintf(" and %d more", len(files)-1)
	}
	return filter.NewPage(title)
}

// endPage writes the end of the page, and returns the exit code.
func (s *stream) endPage(page *filter.Page, w io.Writer, code int) int {
	if page == nil || s.unread || s.unwritten {
		return code
	}
	_, err := w.Write(page.AppendEnd(nil))
	switch {
	case errors.Is(err, syscall.EPIPE):
		return code
	case err != nil:
		s.unwritten = true
		s.diag.line("write standard output: %v", bare(err))
		return exitIO
	}
	return code
}

// errProfile is the error for a profile with --output=html.
var errProfile = errors.New("a profile of Callgrind has no page: use another --output than html")

// noPage is the translator of an input that has no page. Its error is that of the usage.
type noPage struct{ err error }

func (n noPage) Write([]byte) (int, error) { return 0, usageError{n.err} }
func (n noPage) Close() error              { return nil }
