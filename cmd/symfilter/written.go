package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// checkWritten returns an error if a file that the run replaces is also an input or an output of
// it: the input would be lost, and the rest of the output would be written to a file without a
// name.
func (c *config) checkWritten(files []string, std standard) error {
	for _, written := range []struct {
		flag string
		path fileName
	}{{"--dumpfile-output", c.dumps}, {"--state", c.follow.state}} {
		info, err := os.Stat(string(written.path))
		if written.path == "" || err != nil {
			continue // it will be made, or reported when it is written
		}
		is := func(what string) error {
			return usageError{fmt.Errorf("%s %s: it is also %s; name another file", written.flag, written.path, what)}
		}
		for _, name := range files {
			if input, err := os.Stat(name); err == nil && name != "-" && os.SameFile(input, info) {
				return is("an input")
			}
		}
		if !info.Mode().IsRegular() {
			continue // it is not written to
		}
		switch {
		case (len(files) == 0 || slices.Contains(files, "-")) && isOpenAs(std.in, info):
			return is("an input")
		case isOpenAs(std.out, info):
			return is("the output")
		case isOpenAs(std.err, info):
			return is("where messages are written")
		}
	}
	if c.dumps != "" && c.follow.state != "" && samePlace(string(c.dumps), string(c.follow.state)) {
		return usageError{fmt.Errorf("--dumpfile-output %s: it is also the file of --state; name another file", c.dumps)}
	}
	return nil
}

// isOpenAs reports whether f is the file whose state is info.
func isOpenAs(f *os.File, info os.FileInfo) bool {
	open, err := f.Stat()
	return err == nil && os.SameFile(open, info)
}

// samePlace reports whether a and b, which need not exist, lead to one file.
func samePlace(a, b string) bool {
	same := func(a, b string) bool {
		first, err := os.Stat(a)
		second, err2 := os.Stat(b)
		return err == nil && err2 == nil && os.SameFile(first, second)
	}
	return same(a, b) || filepath.Base(a) == filepath.Base(b) && same(filepath.Dir(a), filepath.Dir(b))
}
