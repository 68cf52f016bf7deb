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

// OpenUnpacked is openUnpacked: it unpacks a compressed module of Linux.
func (inner) OpenUnpacked(path, where string) (*File, error) { return openUnpacked(path, where) }

// OpenBelow is openBelow: it follows no link out of root.
func (inner) OpenBelow(root *os.Root, name, where string) (*File, error) {
	return openBelow(root, name, where)
}

// FindLink is findLink, for the link with this name and checksum.
func (inner) FindLink(ctx context.Context, name string, crc uint32, near string, dirs []string, id ID, note func(Attempt)) (*File, error) {
	return findLink(ctx, link{name, crc}, near, dirs, id, note)
}

// FindAlt is findAlt.
func (inner) FindAlt(ctx context.Context, id ID, name, near string, dirs []string, note func(Attempt)) (*File, error) {
	return findAlt(ctx, id, name, near, dirs, note)
}

// StateOf returns the State of an open file from its info.
func (inner) StateOf(info fs.FileInfo) string { return stateOf(info).text() }

// IsMissing reports whether a is an attempt at a path that does not exist.
func (inner) IsMissing(a Attempt) bool { return a.Reason == noSuchFile }

// Bytes returns the contents of a file that was read whole, otherwise nil. They are valid until
// Close.
func (i *innerFile) Bytes() []byte { return (*File)(i).contents() }

// Whole reports whether the file was read whole. Such a file has no descriptor.
func (i *innerFile) Whole() bool { return i.whole != nil }

// Modified is modified: it returns the time of the last change.
func (i *innerFile) Modified() (nanoseconds int64, ok bool) { return (*File)(i).modified() }

// State is stateText: it differs for another file at the same path.
func (i *innerFile) State() string { return (*File)(i).stateText() }

// Roots calls visit for each path. The arguments are like the fields of root.
func (i *innerPath) Roots(ctx context.Context, visit func(path string, files int, id ID, faults []Attempt)) error {
	roots, err := (*SymbolPath)(i).roots(ctx)
	for _, r := range roots {
		visit(r.path, r.files, r.id, r.faults)
	}
	return err
}

// Check fails if the list cannot be read, or names no file.
func (i *innerList) Check(ctx context.Context) error { return (*IDsFile)(i).check(ctx) }

// Complete is complete: it finds the only ID with a prefix.
func (i *innerTree) Complete(prefix ID) ID { return (*Tree)(i).complete(prefix) }
