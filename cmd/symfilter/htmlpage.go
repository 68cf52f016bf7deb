package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/symfilter/symfilter/internal/page"
)

func newPage(files []string) *page.Page {
	title := standardName
	if len(files) > 0 && files[0] != "-" {
		title = filepath.Base(files[0])
	}
	if len(files) > 1 {
		title += fmt.Sprintf(" and %d more", len(files)-1)
	}
	return page.New(title)
}

var errProfile = errors.New("a profile of Callgrind cannot be printed as a page: use an --output other than html")

// A noPage is the translator for an input that cannot be printed as a page. Write returns a usage
// error.
type noPage struct{ err error }

func (n noPage) Write([]byte) (int, error) { return 0, usageError{n.err} }
func (n noPage) Close() error              { return nil }
