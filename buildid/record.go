package buildid

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// A state identifies a version of a file or folder: it changes with the content.
type state struct {
	size  int64
	mtime int64  // nanoseconds since 1970
	inode uint64 // 0 on systems without inodes
}

func stateOf(info fs.FileInfo) state {
	s := state{size: info.Size(), mtime: info.ModTime().UnixNano(), inode: inode(info)}
	if info.IsDir() {
		s.size = 0
	}
	return s
}

// settled reports whether s is old enough to detect every change after now. A file that changed
// shortly before now may change again without a new time stamp, since clocks of file systems tick
// slowly.
func (s state) settled(now time.Time) bool { return s.mtime < now.Add(-young).UnixNano() }

// A content is the type of a file, from its first bytes.
type content uint8

const (
	unread  content = iota // not readable, or not a regular file when it was examined
	foreign                // neither ELF nor zip: a text, a picture
	elfFile                // an ELF file with or without an ID
	archive                // a zip file
)

// A record describes a file at the time it was read. A folder's records are immutable after the
// walk that made them.
type record struct {
	name    string
	state   state
	content content
	settled bool // if the state is unchanged, so is the content
	id      ID
	members []member // members of an archive that have an ID
}

// A member is a file in an archive.
type member struct {
	name  string
	index int // index in the archive's directory
	id    ID
}

func (a *record) equal(b *record) bool {
	return a.name == b.name && a.state == b.state && a.content == b.content && a.settled == b.settled && a.id == b.id &&
		slices.Equal(a.members, b.members)
}

// A folder lists the files and subfolders of a directory at the time it was read. It is immutable
// after the walk that made it.
type folder struct {
	rel     string // below the root, "" for the root itself
	state   state
	settled bool     // if the state is unchanged, so are the names
	files   []record // regular files and links, sorted by name
	folders []string // sorted
	faulty  bool     // not all of the files could be read
}

// file returns the record with a name, or nil.
func (d *folder) file(name string) *record {
	i, ok := slices.BinarySearchFunc(d.files, name, func(r record, name string) int { return cmp.Compare(r.name, name) })
	if !ok {
		return nil
	}
	return &d.files[i]
}

// A rootIndex describes the files at or below one path of the operator.
type rootIndex struct {
	path    string // as the operator named it
	base    string // path, or the folder of path if path is a file
	file    bool
	folders []*folder // sorted by rel
	elf     int       // number of ELF files, with or without an ID, and of members with an ID
	archive bool      // at least one of the files is an archive
}

// A place is the location of a file with an ID.
type place struct {
	id     ID
	root   *rootIndex
	folder *folder
	file   int
	member int // index in record.members; -1: the file itself
}

func (p *place) path() string {
	return filepath.Join(p.root.base, p.folder.rel, p.folder.files[p.file].name)
}

// shown returns the path for messages, with an exclamation mark between an archive and its member.
func (p *place) shown() string {
	if p.member < 0 {
		return p.path()
	}
	return p.path() + "!" + p.folder.files[p.file].members[p.member].name
}

// A pathIndex describes all files below all paths. It is immutable.
type pathIndex struct {
	roots  []*rootIndex
	places []place   // sorted by ID
	faults []Attempt // unreadable files and folders, sorted
}

// newPathIndex returns the index of roots. It also sets elf and archive of each root.
func newPathIndex(roots []*rootIndex, faults []Attempt) *pathIndex {
	x := &pathIndex{roots: roots, faults: faults}
	for _, root := range roots {
		root.elf, root.archive = 0, false
		for _, d := range root.folders {
			for i := range d.files {
				switch r := &d.files[i]; r.content {
				case elfFile:
					root.elf++
					if !r.id.IsZero() {
						x.places = append(x.places, place{r.id, root, d, i, -1})
					}
				case archive:
					root.archive = true
					root.elf += len(r.members)
					for j := range r.members {
						x.places = append(x.places, place{r.members[j].id, root, d, i, j})
					}
				}
			}
		}
	}
	slices.SortFunc(x.places, func(a, b place) int { return cmp.Compare(a.id.s, b.id.s) })
	return x
}

// find returns the places of files with id, sorted by path.
func (x *pathIndex) find(id ID) []place {
	i, _ := slices.BinarySearchFunc(x.places, id, func(p place, id ID) int { return cmp.Compare(p.id.s, id.s) })
	n := i
	for n < len(x.places) && x.places[n].id == id {
		n++
	}
	found := slices.Clone(x.places[i:n])
	slices.SortFunc(found, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.path(), b.path()), cmp.Compare(a.member, b.member))
	})
	return slices.CompactFunc(found, func(a, b place) bool { return a.member == b.member && a.path() == b.path() })
}
