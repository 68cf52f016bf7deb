//go:build !unix

package symindex

import (
	"io"
	"os"
)

// load reads the first size bytes of f.
func load(f *os.File, size int) (data []byte, mapped bool, err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, false, err
}

func unmap([]byte) error { return nil }
