package buildid

import (
	"io"
	"os"
)

// NewOSFile is [NewFile] for a file of the system, which can be mapped. The caller has checked the
// build ID through f. Close closes closer, if that is not nil, but not f.
func NewOSFile(f *os.File, size int64, path, where string, closer io.Closer) *File {
	return &File{r: f, size: size, path: path, where: where, os: f, closer: closer}
}
