//go:build !unix

package contextfile

import (
	"io/fs"
	"os"
)

// on this system, nothing prevents two processes from using one file
const locks = false

// planted returns false: the owners of files are not checked on this system.
func planted(_, _ fs.FileInfo) bool { return false }

func lock(*os.File) bool { return true }
