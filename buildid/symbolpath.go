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

// A SymbolPath finds files by their notes, anywhere below the operator's paths and in zip files
// there. It is safe for concurrent use.
type SymbolPath struct {
	paths  []string
	memory memory
	index  atomic.Pointer[pathIndex] // nil until built
	// A mutex for making the index. It is a channel with one token, so a context can end the wait.
	lock chan struct{}

	// The token guards deep, shallow, unsaved and saved.
	deep     pace      // pace of walks that examine all files
	shallow  pace      // pace of walks that examine folders only
	unsaved  []bool    // by path: the index of the path differs from the index on disk
	saved    time.Time // time of the last write of the index
	unpacked unpackedSet
	opens    atomic.Int64 // files opened to read their notes
}

// SymbolPathOptions configure a [SymbolPath].
type SymbolPathOptions struct {
	Paths []string // files, folders (recursively), and zip files

	// CacheDir is a folder of the user's. A missing CacheDir is created. It keeps the index of the
	// paths for the next run, and inflated members of zip files. If CacheDir is "" or not usable,
	// no index is kept, and members are inflated in the system's folder for temporary files.
	CacheDir string
}

// OpenSymbolPath returns a finder. It reads nothing before the first Find. Close removes inflated
// members of zip files and keeps the index.
func OpenSymbolPath(o SymbolPathOptions) *SymbolPath {
	p := &SymbolPath{paths: slices.Clone(o.Paths), memory: memory{o.CacheDir}, lock: make(chan struct{}, 1), unsaved: make([]bool, len(o.Paths))}
	p.lock <- struct{}{}
	return p
}

// Close writes the index to CacheDir unless a walk is running. It removes unused inflated members;
// a member with an open File is removed when the File is closed. The finder stays usable.
func (p *SymbolPath) Close() error {
	select {
	case <-p.lock:
		if x := p.index.Load(); x != nil {
			p.save(x)
		}
		p.lock <- struct{}{}
	default: // another goroutine is walking: the index is not saved
	}
	return p.unpacked.close()
}

// Find returns the file whose note holds q.ID. Among several files, Debug and Alt queries prefer
// debug information, then a full symbol table. Executable queries prefer a file with the code.
// Among equals the first path in sorted order wins.
//
// The first Find walks the paths in goroutines that end before it returns. Concurrent calls wait
// for the walk. If the index has no file, or no debug information, Find examines the folders again,
// for new files. That happens at most once a second, and takes at most 1/50 of the time unless an
// indexed file has changed. A walk that ends with ctx is repeated by the next Find.
//
// If another process has left its index in CacheDir, a file with debug information is found in that
// index without a walk. Its note is still checked.
func (p *SymbolPath) Find(ctx context.Context, q Query, note func(Attempt)) (*File, error) {
	s := search{ctx: ctx, where: "symbol path", query: q, note: note}
	if q.ID.IsZero() {
		s.noteMiss(s.where, "without a build ID no file can be looked up")
		return nil, s.miss()
	}
	index, err := p.index.Load(), error(nil)
	if index == nil {
		index, err = p.look(ctx, nil, false)
	}
	for last := false; err == nil; last = true {
		found := index.find(q.ID)
		// the attempts of this search are passed on only if no other search follows
		try := search{ctx: ctx, where: s.where, query: q}
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
			f.Close() // there may be a better file now
		case err == nil && next == index:
			for _, a := range told {
				s.noteMiss(a.Where, a.Reason)
			}
			if len(told) == 0 && ctx.Err() == nil {
				index.noteMisses(&s)
			}
			return nil, try.miss()
		}
		index = next
	}
	return nil, fmt.Errorf("build ID %s: %s: %w", q.ID, s.where, err)
}

func (x *pathIndex) noteMisses(s *search) {
	faulty := make(map[string]bool)
	for _, fault := range x.faults {
		s.noteMiss(fault.Where, fault.Reason)
		faulty[fault.Where] = true
	}
	for _, root := range x.roots {
		switch {
		// x.faults already has the reason, unless there were too many faults
		case faulty[root.path] || len(root.folders) == 0:
		case root.file && !root.archive:
			s.noteMiss(root.path, root.folders[0].files[0].mismatch(s.query.ID))
		case root.file:
			s.noteMiss(root.path, "none of the "+number(root.elf, "ELF file")+" in it has this build ID")
		default:
			s.noteMiss(root.path, "none of the "+number(root.elf, "ELF file")+" in "+number(len(root.folders), "folder")+" has this build ID")
		}
	}
}

// mismatch returns the reason why the file does not have the given ID.
func (r *record) mismatch(id ID) string {
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

// number returns n and the noun, with an s unless n is 1.
func number(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// A pace limits how often an expensive operation is repeated.
type pace struct {
	ended time.Time
	took  time.Duration // duration of the last operation; 0 if unknown
}

// due reports whether the operation may be repeated now. stale means that its last result is out of
// date: the operation may then be repeated after recheckMin, however long it takes.
func (p *pace) due(stale bool) bool {
	wait := recheckMin
	if !stale {
		wait = max(wait, p.took*recheckPart)
	}
	return time.Since(p.ended) >= wait
}

// look returns an index newer than seen. It returns seen if nothing has changed, or if another walk
// would be too early. seen is nil, or the index that lacks the file or its debug information. stale
// means that a file has changed since it was indexed.
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
	// the first walk reads everything: its duration does not predict the duration of later walks
	case index == nil:
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

// walk returns an up-to-date index, made from the index old, which may be nil. It returns old if
// nothing has changed.
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

// remembered returns the index of another process, or nil. It may be out of date: each file is
// checked when it is opened, and a walk looks for files that the index lacks.
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
		// after an error all folders are read again
		if folders, err := p.memory.load(abs); err == nil {
			roots[i].folders, some = folders, true
		}
	}
	if !some {
		return nil
	}
	return newPathIndex(roots, nil)
}

// save writes the changed indexes for the next run. It ignores errors: they only cost the next run
// time.
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

var errChanged = errors.New("changed since it was indexed")

// open opens the file at a place if it has the ID of the query. Otherwise it notes the reason and
// returns nil.
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

// openMember opens a member of an archive. It inflates a compressed member.
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
	return NewFile(item.file.File, item.file.size, at.shown(), s.where, &unpackedRef{&p.unpacked, item}), nil
}

// tempDir returns the folder for inflated members: the index folder, if possible, since a cache is
// usually on a disk with space. The system's folder may be in memory.
func (p *SymbolPath) tempDir() string {
	if dir, ok := p.memory.folder(true); ok {
		return dir
	}
	return os.TempDir()
}
