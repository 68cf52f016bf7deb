package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/internal/wording"
)

// A place is a path that a flag names, or the system's folder of debug files.
type place struct{ flag, path string }

const (
	systemPlace = "the system's"
	imagePlace  = "--image"
)

// places returns the places in which debug files are searched.
func (c *config) places() (places []place) {
	for _, flag := range []struct {
		name  string
		paths []string
	}{
		{"--symbol-path", c.symbolPaths},
		{"--obj", c.objects},
		{imagePlace, c.imagePaths()},
		{"--build-id-dir", c.trees},
		{"--ids-txt", c.idsFiles},
		{"--debug-file-directory", c.debugDirs},
		{"--dwp", given(string(c.dwp))},
		{"--sysroot", given(c.sysroot)},
	} {
		for _, path := range flag.paths {
			places = append(places, place{flag.name, path})
		}
	}
	if !c.noDefaultDirs {
		places = append(places, place{systemPlace, symfilter.DebugDir})
	}
	return places
}

// searchPaths returns the files and folders that are searched for build IDs: the first of places.
func (c *config) searchPaths() []string {
	return slices.Concat(c.symbolPaths, c.objects, c.imagePaths())
}

// given returns a list with path, or an empty list if path is empty.
func given(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

// warnOfUseless reports the places that the user named and that cannot hold debug files. If no FILE
// is named, the log may have been taken for such a place.
func (c *config) warnOfUseless(diag *diagnostics, fromStdin bool) {
	for _, p := range c.places() {
		if p.flag == systemPlace {
			continue
		}
		if err := p.problem(); err != nil {
			msg := ""
			if fromStdin && err == errNoSymbols { // -s $EMPTY log
				msg = "; no FILE is named: if it is the log, the flag has no value of its own"
			}
			diag.printf("%s %s: %v; nothing will be found there%s", p.flag, p.path, wording.Cause(err), msg)
		}
	}
}

var (
	errNoFolder  = errors.New("not a folder")
	errNoSymbols = errors.New("neither an ELF file, a .zip file nor a folder")
	errNoELF     = errors.New("not an ELF file")
)

// problem returns why nothing can be found at p, or nil. It opens only regular files and folders,
// because opening a FIFO waits for its other end.
func (p place) problem() error {
	info, err := os.Stat(p.path)
	if err != nil {
		return err
	}
	switch p.flag {
	case imagePlace:
		return nil // parseImage has examined it
	case "--symbol-path", "--obj":
		if info.IsDir() {
			return listable(p.path)
		}
		return begins(p.path, info, errNoSymbols, "\x7fELF", "PK\x03\x04", "PK\x05\x06")
	case "--dwp":
		return begins(p.path, info, errNoELF, "\x7fELF")
	case "--ids-txt":
		return begins(p.path, info, errNotRegular, "")
	}
	if !info.IsDir() {
		return errNoFolder
	}
	_, err = os.Stat(p.path + "/.") // files in it may be found by name, even if it cannot be listed
	return err
}

// begins returns other unless path, whose state is info, is a regular file that begins with one of
// magics, or why it cannot be read.
func begins(path string, info fs.FileInfo, other error, magics ...string) error {
	if !info.Mode().IsRegular() {
		return other
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	start := make([]byte, 4)
	n, err := io.ReadFull(f, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	for _, magic := range magics {
		if len(magic) <= n && string(start[:len(magic)]) == magic {
			return nil
		}
	}
	return other
}

// listable returns why the folder dir cannot be listed, or nil.
func listable(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.ReadDir(1); err != io.EOF {
		return err
	}
	return nil
}
