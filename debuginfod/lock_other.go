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
	// two processes may fetch the same file; the one that finishes last stays
	return errors.ErrUnsupported
}
