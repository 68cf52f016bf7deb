//go:build !linux

package debuginfod

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

func accessed(info fs.FileInfo) time.Time { return info.ModTime() }

func lockFile(context.Context, *os.File, key) error {
	// two processes may fetch the same file; the later file replaces the earlier one
	return errors.ErrUnsupported
}
