package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// checkWritten returns an error if the run would replace one of its own inputs or outputs, or if
// two flags name one file to write. A replaced input would be lost, and the rest of a replaced
// output would have no name.
func (c *config) checkWritten(files []string, std standard) error {
	all := c.written()
	for _, written := range all {
		info, err := os.Stat(written.path)
		if err != nil {
			continue // it will be made, or the write reports the error
		}
		is := func(what string) error {
			return usageError{fmt.Errorf("%s %s is also %s; name another file", written.flag, written.path, what)}
		}
		for _, name := range slices.Concat(files, c.gates.read(), c.suppressions.read()) {
			if input, err := os.Stat(name); err == nil && name != "-" && os.SameFile(input, info) {
				return is("an input")
			}
		}
		if !info.Mode().IsRegular() {
			continue // a pipe or a device is not replaced
		}
		switch {
		case (len(files) == 0 || slices.Contains(files, "-")) && isOpenAs(std.in, info):
			return is("an input")
		case isOpenAs(std.out, info):
			return is("the output")
		case isOpenAs(std.err, info):
			return is("the file for messages")
		}
	}
	for i, first := range all {
		for _, second := range all[i+1:] {
			if samePlace(first.path, second.path) && !isDevice(first.path) {
				return usageError{fmt.Errorf("%s %s is also the file of %s; name another file", first.flag, first.path, second.flag)}
			}
		}
	}
	return nil
}

type writtenFile struct{ flag, path string }

// written returns the files that the run writes because of flags.
func (c *config) written() (all []writtenFile) {
	for _, f := range []writtenFile{{"--dumpfile-output", string(c.dumps)}, {"--state", string(c.follow.state)}, {"--context-file", string(c.contextFile)}, {"--path", string(c.container.path)}} {
		if f.path != "" {
			all = append(all, f)
		}
	}
	if c.report != "" && c.report != standardOutput {
		all = append(all, writtenFile{"--report", string(c.report)})
	}
	if c.gates.update {
		all = append(all, writtenFile{"--baseline", string(c.gates.baseline)})
	}
	for _, o := range c.outputs {
		if o.file != "" {
			all = append(all, writtenFile{"--output=" + o.form, o.file})
		}
	}
	return all
}

func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

func isOpenAs(f *os.File, info os.FileInfo) bool {
	open, err := f.Stat()
	return err == nil && os.SameFile(open, info)
}

// samePlace reports whether the paths a and b lead to one file, which need not exist.
func samePlace(a, b string) bool {
	same := func(a, b string) bool {
		first, err := os.Stat(a)
		second, err2 := os.Stat(b)
		return err == nil && err2 == nil && os.SameFile(first, second)
	}
	return same(a, b) || filepath.Base(a) == filepath.Base(b) && same(filepath.Dir(a), filepath.Dir(b))
}
