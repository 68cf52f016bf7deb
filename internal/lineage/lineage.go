// Package lineage finds the files that had a log's name one after the other. It skips files that
// only repeat lines already read, and decides in which order the rest must be read.
//
// Its inputs are listings of folders and a checkpoint. Only its [Opener] opens files. It starts no
// goroutine and reads no clock. It compares files by their first bytes, and by the bytes before the
// read offset.
package lineage

import (
	"errors"
	"io"
	"time"
)

// Bytes that identify a file, and bounds of the marks of removed files.
const (
	HeadSize = 256 // bytes at the beginning of a file
	// bytes before the read offset, compared at each read: they differ after a truncation and
	// rewrite
	RecentSize = 64
	// MaxMarks bounds a log's marks of files that no longer exist. A file is removed when its
	// archive is complete, so the last few marks are enough. After a burst of rotations, MaxBurst
	// is the bound: many files may be compressed before the archives are next examined.
	MaxMarks = 16
	MaxBurst = 64 // marks after a burst; 8 KB in a checkpoint

	burstTime = time.Minute // a burst consists of files last changed within this time
)

// ErrLater reports that a decision must wait: a file may be incomplete, or cannot be opened now.
var ErrLater = errors.New("not decided yet")

// An ID identifies a file by device and inode. Only files that exist at the same time certainly
// have different IDs.
type ID struct{ Dev, Ino uint64 }

// A File is a file in a listing, under a name that rotation gives.
type File struct {
	Path    string
	ID      ID
	ModTime time.Time
	Size    int64
	Packed  bool   // an archive, whose ModTime may be the time of its compression
	Of      string // path from which rotation moved the file
}

// A State describes an open file. Sizes and offsets of an archive refer to its contents.
type State struct {
	File             // with the size at the last call of Look
	Head      []byte // first bytes, HeadSize at most
	Off, Look int64  // the next line begins at Off; its end was searched up to Look
	Recent    []byte // bytes before Look
	Length    int64  // size of an archive's contents; -1 until it was unpacked to its end
	Damaged   bool   // the rest of an archive cannot be unpacked
	Opaque    bool   // compressed bytes that are read as they are
}

// A Content is an open file, or the contents of an archive.
type Content interface {
	io.ReaderAt
	State() State
	Close()
}

// An Opener opens files for a [Log].
type Opener interface {
	// Open opens a file at its beginning. The error wraps ErrLater if a later call may succeed, and
	// fs.ErrNotExist if there is no such file.
	Open(f File) (Content, error)
	// Look returns the state of an open file, with its current size, time and first bytes.
	Look(c Content) (State, error)
	// Keep prepares c, which was opened as f, for a later read. If memory or descriptors are
	// scarce, c uses none until that read. Keep returns false if c may still be written:
	// comparisons with c are then not final.
	Keep(c Content, f File) bool
}

// A Step is a file to read from the offset From.
type Step struct {
	Content
	From   int64
	Recent []byte // bytes before From, RecentSize at most
}

func stepAt(c Content, from int64) (Step, error) {
	recent := make([]byte, min(from, RecentSize))
	if n, err := c.ReadAt(recent, from-int64(len(recent))); n < len(recent) {
		return Step{}, err
	}
	return Step{c, from, recent}, nil
}

// CloseAll closes the files in all that are not nil.
func CloseAll(all []Content) {
	for _, c := range all {
		if c != nil {
			c.Close()
		}
	}
}
