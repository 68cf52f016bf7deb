//go:build !linux

package newfile

import (
	"errors"
	"os"
)

// unnamed returns nil: on this system, every file has a name.
func unnamed(*os.Root, string) *File { return nil }

func (f *File) place() string { return "" }

func (f *File) link(string) error { return errors.ErrUnsupported }
