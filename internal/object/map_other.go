//go:build !linux && !darwin

package object

import (
	"errors"
	"os"
)

// mapFile refuses: sections are read when they are asked for.
func mapFile(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

const canMap = false

func anonymous(uint64) ([]byte, error) { return nil, errors.ErrUnsupported }

// InMemory reports false: it is not known here.
func InMemory(string) bool { return false }

func scratch(string, uint64) (*os.File, []byte, error) { return nil, nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }

// ReleasePages does nothing here.
func (f *File) ReleasePages() {}
