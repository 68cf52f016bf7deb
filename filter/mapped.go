package filter

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/prefixmap"
)

// A ProcessMapping is a mapping of code in a process.
type ProcessMapping struct {
	Start, End uint64 // first address, and address after the last
	Offset     uint64 // offset in the file
	Base       uint64 // address of the first page of the file
	Bias       uint64 // difference between an address in the process and in the file
	Path       string // as the process sees it
	PID        int    // process ID

	// Predictable is set if the address does not identify the process. Either the program is not
	// position-independent, or the kernel does not randomize addresses, or the address is below 4
	// GiB, where few bits are random. Another process may have other code there, so the mapping is
	// used only for stacks whose calls prove it.
	Predictable bool

	// Foreign is set if Path may be another file for symfilter: the process has another root folder
	// or mount namespace.
	Foreign bool

	// ID is the build ID of the mapped file. If there is none, File describes the file, and only
	// the same file at Path is used.
	ID   buildid.ID
	File fs.FileInfo
}

var errReplacedSince = errors.New("the file has no build ID, and was replaced after the process loaded it")

var errElsewhere = errors.New("the file has no build ID, and the process loaded it in another root folder or mount namespace")

// mappedAt returns the mapping at an address in the processes that write the log, or nil if none is
// certain.
func mappedAt(t *tracer, addr uint64) *judge.ProcessMap {
	m, ok := t.opt.Mapped(addr)
	if !ok {
		return nil
	}
	return &judge.ProcessMap{
		Start: m.Start, Offset: m.Offset, Base: m.Base, Bias: m.Bias, Path: m.Path, ID: m.ID, PID: m.PID,
		Predictable: m.Predictable,
		Open:        func() *judge.Image { return t.imageMapped(&m) },
	}
}

// imageMapped returns the file of a mapping, or an Image with an error if the path no longer leads
// to that file.
func (t *tracer) imageMapped(m *ProcessMapping) *judge.Image {
	info, err := os.Stat(prefixmap.Maps(t.opt.PrefixMap).Place(m.Path, t.opt.Sysroot))
	switch {
	case err == nil && m.File != nil && os.SameFile(info, m.File) && info.Size() == m.File.Size() && info.ModTime().Equal(m.File.ModTime()):
		return t.imageAt(m.Path)
	case m.Foreign:
		return &judge.Image{Path: m.Path, Err: errElsewhere}
	}
	return &judge.Image{Path: m.Path, Err: errReplacedSince}
}

// baseOf returns the Base of a file that a process has mapped, with the maps of the process as the
// evidence.
func baseOf(p *judge.ProcessMap) Base {
	return Base{p.Path, p.Base, "the maps of process " + strconv.Itoa(p.PID) + " show this address"}
}
