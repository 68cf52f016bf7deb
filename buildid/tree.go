package buildid

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// A Tree finds files by their paths in a tree of debug files. It supports the layouts of:
//
//   - GDB and the packages of the distributions: DIR/.build-id/ab/cdef….debug is the debug file of
//     build ID abcdef…, and the same path without .debug is the program
//   - Fuchsia's build, and symbol servers: the same paths without .build-id
//   - Sentry's symsorter ("unified"): DIR/ab/cdef…/debuginfo and DIR/ab/cdef…/executable
//
// A Tree is safe for concurrent use. It keeps nothing in memory, so it finds new files.
type Tree struct {
	dir string
}

// NewTree returns the tree at dir. dir is the folder that holds .build-id, or .build-id itself
// under any name.
func NewTree(dir string) *Tree { return &Tree{dir} }

// Find returns the file at the path of q.ID in the tree, unless its note holds another ID. It
// accepts a file without a note: the operator named the tree, and the path has the ID. Without a
// debug file, a Debug or Alt query gets the program itself, which may be stripped.
func (t *Tree) Find(ctx context.Context, q Query, note func(Attempt)) (*File, error) {
	s := search{ctx: ctx, where: "tree " + t.dir, query: q, note: note}
	if q.ID.IsZero() {
		s.noteMiss(t.dir, "without a build ID no file can be looked up")
		return nil, s.miss()
	}
	if q.ID.Len() < minPathID {
		s.noteMiss(t.dir, "a build ID of fewer than 2 bytes cannot be looked up in a .build-id folder")
		return nil, s.miss()
	}
	places := t.places(q.ID)
	if q.Kind != Executable {
		for _, place := range places {
			if f := s.try(place + ".debug"); f != nil {
				return f, nil
			}
		}
	}
	var sentry, programs []string
	for _, place := range places {
		if info, err := os.Stat(place); err == nil && info.IsDir() { // Sentry's layout
			if q.Kind != Executable {
				sentry = append(sentry, filepath.Join(place, "debuginfo"))
			}
			place = filepath.Join(place, "executable")
		}
		programs = append(programs, place)
	}
	for _, path := range append(sentry, programs...) {
		if f := s.try(path); f != nil {
			return f, nil
		}
	}
	return nil, s.miss()
}

// complete returns the only build ID in the tree that begins with prefix. It returns zero if no ID
// or several IDs begin with prefix, or if prefix has fewer than two bytes.
func (t *Tree) complete(prefix ID) (id ID) {
	if prefix.Len() < minPathID {
		return id
	}
	for _, place := range t.places(prefix) {
		folder, begins := filepath.Split(place)
		d, err := os.Open(folder)
		if err != nil {
			continue
		}
		names, _ := d.Readdirnames(maxSiblings)
		d.Close()
		for _, name := range names {
			if !strings.HasPrefix(name, begins) {
				continue
			}
			found, err := Parse([]byte(filepath.Base(folder) + strings.TrimSuffix(name, ".debug")))
			if err != nil {
				continue
			}
			if !id.IsZero() && found != id {
				return ID{}
			}
			id = found
		}
	}
	return id
}

// maxSiblings bounds the names read from one of a tree's 256 folders.
const maxSiblings = 1 << 16

// places returns the possible paths of id's files in the tree, without a suffix such as .debug. id
// must have at least minPathID bytes.
func (t *Tree) places(id ID) []string {
	hex := id.String()
	place := filepath.Join(hex[:2], hex[2:])
	if filepath.Base(t.dir) == ".build-id" {
		return []string{filepath.Join(t.dir, place)}
	}
	return []string{filepath.Join(t.dir, ".build-id", place), filepath.Join(t.dir, place)}
}
