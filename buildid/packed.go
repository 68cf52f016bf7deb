package buildid

import (
	"bytes"
	"io"
	"io/fs"
	"strings"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/unpack"
)

// maxModule bounds a module, compressed or unpacked, in bytes. The largest module of Linux, amdgpu,
// has 30 MB without debug information.
const maxModule = 128 << 20

// openUnpacked is like OpenRegular, but unpacks a compressed Linux module into memory: see
// isPackedModule.
func openUnpacked(path, where string) (*File, error) {
	f, err := OpenRegular(path, where)
	if err != nil || !isPackedModule(path) {
		return f, err
	}
	return unpackedModule(f)
}

// isPackedModule reports whether path names a compressed Linux module, such as NAME.ko.xz.
func isPackedModule(path string) bool {
	for _, suffix := range []string{".xz", ".zst", ".gz"} {
		if name, ok := strings.CutSuffix(path, suffix); ok {
			return strings.HasSuffix(name, ".ko") || strings.HasSuffix(name, ".ko.debug")
		}
	}
	return false
}

// unpackedModule unpacks f into memory, closes f and returns the unpacked file. It returns f
// itself, still open, if f is not compressed or its first bytes cannot be read.
func unpackedModule(f *File) (*File, error) {
	begin := make([]byte, unpack.LongestMagic)
	n, err := f.ReadAt(begin, 0)
	format, _ := unpack.FormatOf(begin[:n])
	if err != nil && err != io.EOF || format == nil {
		return f, nil
	}
	fail := func(err error) (*File, error) {
		f.Close()
		return nil, &fs.PathError{Op: "unpack", Path: f.path, Err: err}
	}
	if f.size > maxModule {
		return fail(&object.LimitError{What: "bytes", Got: uint64(f.size), Max: maxModule})
	}
	image, err := format.All(io.NewSectionReader(f, 0, f.size), maxModule)
	if err != nil {
		return fail(err)
	}
	state := f.stateText()
	if err := f.Close(); err != nil {
		return nil, err
	}
	unpacked := NewFile(bytes.NewReader(image), int64(len(image)), f.path, f.where, nil)
	unpacked.state = state
	return unpacked, nil
}
