package buildid

import (
	"context"
	"io/fs"
	"os"

	"github.com/symfilter/symfilter/internal/access"
)

func init() {
	access.BuildID = func(of any) any {
		switch of := of.(type) {
		case *File:
			return (*innerFile)(of)
		case *SymbolPath:
			return (*innerPath)(of)
		case *IDsFile:
			return (*innerList)(of)
		case *Tree:
			return (*innerTree)(of)
		}
		return inner{}
	}
}

// Only packages of this Go module can call the methods of these types: see [access.BuildID].
type (
	inner     struct{}
	innerFile File
	innerPath SymbolPath
	innerList IDsFile
	innerTree Tree
)

// OpenUnpacked opens the regular file at path. It unpacks a compressed module of Linux.
func (inner) OpenUnpacked(path, where string) (*File, error) { return openUnpacked(path, where) }

// OpenBelow opens the regular file at the path name below root. It follows no link out of root.
func (inner) OpenBelow(root *os.Root, name, where string) (*File, error) {
	return openBelow(root, name, where)
}

// FindLink returns the debug file of a link with this name and checksum.
func (inner) FindLink(ctx context.Context, name string, crc uint32, near string, dirs []string, id ID, note func(Attempt)) (*File, error) {
	return findLink(ctx, link{name, crc}, near, dirs, id, note)
}

// FindAlt returns the supplementary file for the debug file at near.
func (inner) FindAlt(ctx context.Context, id ID, name, near string, dirs []string, note func(Attempt)) (*File, error) {
	return findAlt(ctx, id, name, near, dirs, note)
}

// StateOf returns the same text as State, for an open file whose Stat returned info.
func (inner) StateOf(info fs.FileInfo) string { return stateOf(info).text() }

// IsMissing reports whether a is an attempt at a path that does not exist.
func (inner) IsMissing(a Attempt) bool { return a.Reason == noSuchFile }

// Bytes returns the contents of a file that was read whole, otherwise nil. They are valid until
// Close.
func (i *innerFile) Bytes() []byte { return (*File)(i).contents() }

// Whole reports whether the file was read whole. Such a file has no descriptor.
func (i *innerFile) Whole() bool { return i.whole != nil }

// Modified returns the time of the last change, in nanoseconds since 1970. ok is false unless the
// file is a regular file of the system.
func (i *innerFile) Modified() (nanoseconds int64, ok bool) { return (*File)(i).modified() }

// State returns a text that changes if the file at the path is replaced or written to. It is empty
// if i is not from a file of the system.
func (i *innerFile) State() string { return (*File)(i).stateText() }

// Roots calls visit for each path of the SymbolPath. visit gets the number of files, the ID and the
// faults, as in root.
func (i *innerPath) Roots(ctx context.Context, visit func(path string, files int, id ID, faults []Attempt)) error {
	roots, err := (*SymbolPath)(i).roots(ctx)
	for _, r := range roots {
		visit(r.path, r.files, r.id, r.faults)
	}
	return err
}

// Check fails if the list cannot be read, or names no file.
func (i *innerList) Check(ctx context.Context) error { return (*IDsFile)(i).check(ctx) }

// Complete returns the only build ID in the tree that begins with prefix, or zero.
func (i *innerTree) Complete(prefix ID) ID { return (*Tree)(i).complete(prefix) }
