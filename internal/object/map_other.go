//go:build !linux && !darwin

package object

import (
	"errors"
	"os"
)

// mapFile fails on this system: sections are read on demand.
func mapFile(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

const canMap = false

func anonymous(uint64) ([]byte, error) { return nil, errors.ErrUnsupported }

// InMemory returns false: this system does not report the kind of a file system.
func InMemory(string) bool { return false }

func scratch(string, uint64) (*os.File, []byte, error) { return nil, nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }

func populate([]byte) {}

// ReleasePages does nothing here.
func (c *contents) ReleasePages() {}
