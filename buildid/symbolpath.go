package buildid

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// A SymbolPath finds files by the notes in them, wherever they lie under the paths that the operator named, also in zip
// files. It may be used by many goroutines at once.
type SymbolPath struct {
	paths  []string
	memory memory
	index  atomic.Pointer[pathIndex] // nil until built
	lock   chan struct{}             // holds a token, for whoever makes the index; a channel, so that waiting ends with a context

	// What follows belongs to the holder of the token.
	deep     pace      // of looks at all files
	shallow  pace      // of looks at folders
	unsaved  []bool    // by path
	saved    time.Time // when the index was last written
	unpacked unpackedSet
	opens    atomic.Int64 // files opened to read their notes
}

// SymbolPathOptions say where a [SymbolPath] looks, and what it may keep.
type SymbolPathOptions struct {
	Paths []string // files, folders (recursively), and zip files

	// CacheDir is a folder of the user's own, which is made if need be; empty for none. What was learned about the paths is
	// remembered there for the next run, and members of zip files are inflated there, into files without a name.
	CacheDir string
}

// NewSymbolPath returns a finder for these files and, recursively, folders, that remembers nothing on disk.
func NewSymbolPath(paths ...string) *SymbolPath {
	return OpenSymbolPath(SymbolPathOptions{Paths: paths})
}

// OpenSymbolPath returns a finder. Nothing is read before the first Find. A finder that found something in a zip file should be
// closed.
func OpenSymbolPath(o SymbolPathOptions) *SymbolPath {
	p := &SymbolPath{paths: slices.Clone(o.Paths), memory: memory{o.CacheDir}, lock: make(chan struct{}, 1), unsaved: make([]bool, len(o.Paths))}
	p.lock <- struct{}{}
	return p
}

// Close remembers what came last, and removes what was inflated: now or, where a File is still open, when that is closed. The finder
// stays usable.
func (p *SymbolPath) Close() error {
	select {
	case <-p.lock:
		if x := p.index.Load(); x != nil {
			p.save(x)
		}
		p.lock <- struct{}{}
	default: // somebody is looking
	}
	return p.unpacked.close()
}

// Find returns the file whose note holds q.ID. Of several, Debug and Alt queries prefer one with debug information, then one
// with a full symbol table; Executable ones one that holds its code; then the path that sorts first.
//
// The first Find walks the paths in goroutines that end before it returns; others wait for it. Files that come later are found: a Find
// that finds nothing, or no debug information, looks at the folders again if that was not done a moment ago, and more rarely the longer it
// takes. A walk that ctx ends is done again by the next Find. Where another process has left its index, a file with debug information that is
// in it, and is the one asked for, is found without a walk.
func (p *SymbolPath) Find(ctx context.Context, q Query, note func(Attempt)) (*File, error) {
	s := search{ctx: ctx, where: "symbol path", query: q, note: note}
	if q.ID.IsZero() {
		s.tell(s.where, "without a build ID no file can be looked up")
		return nil, s.miss()
	}
	index, err := p.index.Load(), error(nil)
	if index == nil {
		index, err = p.look(ctx, nil, false)
	}
	for last := false; err == nil; last = true {
		found := index.find(q.ID)
		try := search{ctx: ctx, where: s.where, query: q} // told only if it is the last
		var told []Attempt
		try.note = func(a Attempt) { told = append(told, a) }
		f, whole := try.best(len(found), func(i int) *File { return p.open(&try, &found[i]) })
		if f != nil && (whole || last) {
			return f, nil
		}
		next := index
		if !last && try.passing == nil && ctx.Err() == nil {
			next, err = p.look(ctx, index, f == nil && len(found) > 0)
		}
		switch {
		case f != nil && (err != nil || next == index):
			return f, nil
		case f != nil:
			f.Close() // there may be a better one now
		case err == nil && next == index:
			for _, a := range told {
				s.tell(a.Where, a.Said)
			}
			if len(told) == 0 && ctx.Err() == nil {
				index.tell(&s)
			}
			return nil, try.miss()
		}
		index = next
	}
	return nil, fmt.Errorf("build ID %s: %s: %w", q.ID, s.where, err)
}

// tell says where nothing was found, after a walk.
func (x *pathIndex) tell(s *search) {
	faulty := make(map[string]bool)
	for _, fault := range x.faults {
		s.tell(fault.Where, fault.Said)
		faulty[fault.Where] = true
	}
	for _, root := range x.roots {
		switch {
		case faulty[root.path] || len(root.folders) == 0: // the faults say why, but for those beyond the limit
		case root.file && !root.archive:
			s.tell(root.path, root.folders[0].files[0].said(s.query.ID))
		case root.file:
			s.tell(root.path, "none of the "+number(root.elf, "ELF file")+" in it has this build ID")
		default:
			s.tell(root.path, "none of the "+number(root.elf, "ELF file")+" in "+number(len(root.folders), "folder")+" has this build ID")
		}
	}
}

// said says why the file is not the one of an ID.
func (r *record) said(id ID) string {
	switch {
	case r.content == unread:
		return errNotRegular.Error()
	case r.content != elfFile:
		return "not an ELF file"
	case r.id.IsZero():
		return ErrNoID.Error()
	}
	return (&otherIDError{r.id, id}).Error()
}

// number returns n and the noun.
func number(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// A pace says when something may be done again that costs time.
type pace struct {
	ended time.Time
	took  time.Duration // 0: not known yet
}

// due reports whether that may be done again. When it is called for, that is as soon as it makes sense.
func (p *pace) due(called bool) bool {
	wait := recheckMin
	if !called {
		wait = max(wait, p.took*recheckPart)
	}
	return time.Since(p.ended) >= wait
}

// look returns an index newer than seen, which is nil or one in which something was not found, or seen if nothing has changed or it is
// not time to look again. stale: a file in it is not what it was.
func (p *SymbolPath) look(ctx context.Context, seen *pathIndex, stale bool) (*pathIndex, error) {
	select {
	case <-p.lock:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { p.lock <- struct{}{} }()
	index := p.index.Load()
	if index != seen {
		return index, nil
	}
	if index == nil {
		if index = p.remembered(); index != nil {
			p.index.Store(index)
			return index, nil
		}
	}
	deep := index == nil || p.deep.due(stale)
	if !deep && !p.shallow.due(false) {
		return index, nil
	}
	began := time.Now()
	next, err := p.walk(ctx, index, !deep)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	p.shallow.ended = now
	if deep {
		p.deep.ended = now
	}
	switch {
	case index == nil: // reading it all says nothing about another look
	case deep:
		p.deep.took = now.Sub(began)
	default:
		p.shallow.took = now.Sub(began)
	}
	p.index.Store(next)
	if slices.Contains(p.unsaved, true) && time.Since(p.saved) >= rememberAgain {
		p.save(next)
	}
	return next, nil
}

// walk looks at the paths, from what is known of them. It returns old if nothing has changed.
func (p *SymbolPath) walk(ctx context.Context, old *pathIndex, shallow bool) (*pathIndex, error) {
	w := walk{ctx: ctx, shallow: shallow, opens: &p.opens}
	roots := make([]*rootWalk, len(p.paths))
	for i, path := range p.paths {
		var known []*folder
		if old != nil {
			known = old.roots[i].folders
		}
		roots[i] = newRootWalk(path, known)
	}
	if err := w.run(roots); err != nil {
		return nil, err
	}
	changed := old == nil || !slices.Equal(old.faults, w.faults)
	var indexes []*rootIndex
	for i, r := range roots {
		changed = changed || r.changed
		p.unsaved[i] = p.unsaved[i] || r.changed
		indexes = append(indexes, &rootIndex{path: r.path, base: r.base, file: r.file, folders: r.folders})
	}
	if !changed {
		return old, nil
	}
	return newPathIndex(indexes, w.faults), nil
}

// remembered returns an index of what was there when another process looked, or nil. Nothing in it is certain: a file is checked when it is
// opened, and what is not found is looked for.
func (p *SymbolPath) remembered() *pathIndex {
	roots := make([]*rootIndex, len(p.paths))
	some := false
	for i, path := range p.paths {
		roots[i] = &rootIndex{path: path, base: path}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if !info.IsDir() {
			roots[i].base, roots[i].file = filepath.Dir(path), true
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			continue
		}
		if folders, err := p.memory.load(abs); err == nil { // without it everything is read again
			roots[i].folders, some = folders, true
		}
	}
	if !some {
		return nil
	}
	return newPathIndex(roots, nil)
}

// save keeps what is worth it for the next run. That this is not possible is no fault: it only costs time.
func (p *SymbolPath) save(x *pathIndex) {
	p.saved = time.Now()
	for i, root := range x.roots {
		if !p.unsaved[i] {
			continue
		}
		p.unsaved[i] = false
		abs, err := filepath.Abs(root.path)
		if err != nil || len(root.folders) == 0 || root.file && !root.archive {
			continue
		}
		_ = p.memory.save(abs, root.folders)
	}
}

// errChanged is about a file that is not the one that was indexed.
var errChanged = errors.New("changed since it was indexed")

// open opens the file at a place if its ID is the one asked for, or tells why not.
func (p *SymbolPath) open(s *search, at *place) *File {
	if at.member < 0 {
		return s.tryVerified(at.path())
	}
	if s.ctx.Err() != nil {
		return nil
	}
	f, err := p.openMember(s, at)
	if err == nil {
		var id ID
		id, err = Read(f, f.size)
		if err == nil && id != s.query.ID {
			err = &otherIDError{id, s.query.ID}
		}
		if err == nil {
			return f
		}
		f.Close()
	}
	s.failed(at.shown(), err)
	return nil
}

// openMember opens a member of an archive.
func (p *SymbolPath) openMember(s *search, at *place) (*File, error) {
	record := &at.folder.files[at.file]
	want := record.members[at.member]
	f, size, err := openRegular(at.path())
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() {
		if !keep {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if stateOf(info) != record.state {
		return nil, errChanged
	}
	z, err := openZip(f, size)
	if err != nil {
		return nil, err
	}
	if want.index >= len(z.File) || z.File[want.index].Name != want.name {
		return nil, errChanged
	}
	m := z.File[want.index]
	if err := checkMember(m); err != nil {
		return nil, err
	}
	if m.Method == zip.Store {
		stored, err := storedMember(f, size, m)
		if err != nil {
			return nil, err
		}
		keep = true
		return NewFile(stored, stored.Size(), at.shown(), s.where, f), nil
	}
	item, err := p.unpacked.get(s.ctx, unpackedKey{at.path(), record.state, want.index}, func() (*tempFile, error) {
		return inflate(s.ctx, m, p.tempDir())
	})
	if err != nil {
		return nil, err
	}
	return NewOSFile(item.file.File, item.file.size, at.shown(), s.where, &unpackedRef{&p.unpacked, item}), nil
}

// tempDir returns where members are inflated: where there is room for what is kept, if there is such a place.
func (p *SymbolPath) tempDir() string {
	if dir, ok := p.memory.folder(true); ok {
		return dir
	}
	return os.TempDir()
}
