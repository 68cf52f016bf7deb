// Package doctor finds out why addresses have no names, and what would give them names.
//
// It looks for these causes: places without debug files, inputs that are not logs, files that did
// not run, and servers that do not answer. The remedies are flags, packages and other files.
package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/wording"
)

// A Search describes how a run searches for debug files: the places in its flags, and the opened
// files.
type Search struct {
	SymbolPaths, Objects             []string
	Images                           []Image
	BuildIDDirs, IDsFiles, DebugDirs []string
	DWP, Sysroot                     string // empty: none

	NoPaths            bool // files that a log names are not opened
	NoDefaultDebugDirs bool

	URLs []string // URLs of the servers to ask
	// flag that prevents requests to servers; empty: none
	NoServers string

	// Examining is set for symfilter doctor, which must not recommend itself.
	Examining bool

	// Opened has the open files of the Search. Summary and Explain need it; Doubts does not.
	Opened *symfilter.Opened
}

// An Image is a value of --image.
type Image struct {
	filter.Image
	Word string // as in the command line
}

// A Place is a path in a flag, or the system's folder of debug files.
type Place struct{ Flag, Path string }

// Flags of places, and the name of the system's folder, which has no flag.
const (
	symbolPathFlag = "--symbol-path"
	objectFlag     = "--obj"
	imageFlag      = "--image"
	buildIDDirFlag = "--build-id-dir"
	idsFileFlag    = "--ids-txt"
	debugDirFlag   = "--debug-file-directory"
	dwpFlag        = "--dwp"
	systemPlace    = "the system's"
)

// Places returns the places that are searched for debug files, starting with Scanned.
func (s *Search) Places() (places []Place) {
	var images, dwp, sysroot []string
	for i := range s.Images {
		images = append(images, s.Images[i].Path)
	}
	if s.DWP != "" {
		dwp = []string{s.DWP}
	}
	if s.Sysroot != "" {
		sysroot = []string{s.Sysroot}
	}
	for _, flag := range []struct {
		name  string
		paths []string
	}{
		{symbolPathFlag, s.SymbolPaths},
		{objectFlag, s.Objects},
		{imageFlag, images},
		{buildIDDirFlag, s.BuildIDDirs},
		{idsFileFlag, s.IDsFiles},
		{debugDirFlag, s.DebugDirs},
		{dwpFlag, dwp},
		{"--sysroot", sysroot},
	} {
		for _, path := range flag.paths {
			places = append(places, Place{flag.name, path})
		}
	}
	if !s.NoDefaultDebugDirs {
		places = append(places, Place{systemPlace, symfilter.DebugDir})
	}
	return places
}

// Scanned returns the files and folders that are searched for build IDs.
func (s *Search) Scanned() []string {
	paths := slices.Concat(s.SymbolPaths, s.Objects)
	for i := range s.Images {
		paths = append(paths, s.Images[i].Path)
	}
	return paths
}

// Warnings returns messages about the user's places that cannot hold debug files. fromStdin is set
// if the command line has no FILE. A message then adds that a flag without a value may have taken
// the log as its value, as in -s $EMPTY log.
func (s *Search) Warnings(fromStdin bool) (all []string) {
	for _, p := range s.Places() {
		if p.Flag == systemPlace {
			continue
		}
		if err := p.problem(); err != nil {
			msg := ""
			if fromStdin && err == errNoSymbols { // -s $EMPTY log
				msg = "; no FILE is given: if this path is the log, the value of the flag is missing before it"
			}
			all = append(all, fmt.Sprintf("%s %s: %v; no file will be found there%s", p.Flag, p.Path, wording.Cause(err), msg))
		}
	}
	return all
}

var (
	errNoFolder  = errors.New("not a folder")
	errNoSymbols = errors.New("not an ELF file, a .zip file or a folder")
	errNoELF     = errors.New("not an ELF file")
	errNoFile    = errors.New("not a regular file")
	errNoImage   = errors.New("not an ELF file; name the ELF file with debug information, such as app.elf or vmlinux")
	errNoImageIn = errors.New("the folder has no ELF file; name the folder of the program, or the program itself")
)

// problem returns why p cannot provide files, or nil. It opens only regular files and folders:
// opening a FIFO waits for its other end.
func (p Place) problem() error {
	info, err := os.Stat(p.Path)
	if err != nil {
		return err
	}
	switch p.Flag {
	case imageFlag:
		return nil // CheckImage has examined it
	case symbolPathFlag, objectFlag:
		if info.IsDir() {
			return listable(p.Path)
		}
		return begins(p.Path, info, errNoSymbols, "\x7fELF", "PK\x03\x04", "PK\x05\x06")
	case dwpFlag:
		return begins(p.Path, info, errNoELF, "\x7fELF")
	case idsFileFlag:
		return begins(p.Path, info, errNoFile, "")
	}
	if !info.IsDir() {
		return errNoFolder
	}
	_, err = os.Stat(p.Path + "/.") // files in it may be found by name even if it cannot be listed
	return err
}

// CheckImage returns why the file at path cannot be a value of --image, or nil. A value is an ELF
// file, a file compressed by xz, zstd or gzip, or a folder with such a file.
func CheckImage(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return checkFolder(path)
	}
	if err == nil {
		err = begins(path, info, errNoImage, "\x7fELF", "\xfd7zX", "\x28\xb5\x2f\xfd", "\x1f\x8b")
	}
	return err
}

// maxBelow bounds the files and folders below a folder in a search for ELF files.
const maxBelow = 1 << 16

func checkFolder(path string) error {
	for range imagesBelow(path) {
		return nil
	}
	return errNoImageIn
}

// imagesBelow yields the files below a folder, or below a link to one, that can be a value of
// --image. It looks at no more than maxBelow files and folders.
func imagesBelow(folder string) iter.Seq[string] {
	return func(yield func(path string) bool) {
		left := maxBelow
		filepath.WalkDir(folder+"/.", func(path string, d fs.DirEntry, fault error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			if fault == nil && d.Type().IsRegular() && CheckImage(path) == nil && !yield(path) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

// begins returns nil if path is a regular file that begins with one of magics. Otherwise it returns
// the error other, or the error of reading the file. info is the state of path.
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
