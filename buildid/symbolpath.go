package buildid

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/symfilter/symfilter/internal/object"
)

const (
	indexReaders  = 8       // goroutines reading notes; a cold disk answers that many at once, a warm one is done sooner
	maxIndexed    = 1000000 // files looked at under all paths together: some 200 MB of index
	maxCandidates = 64      // files of one build ID compared with each other
)

// A SymbolPath finds files by the notes in them, wherever they lie under the paths that the operator named.
// It may be used by many goroutines at once.
type SymbolPath struct {
	paths []string
	lock  chan struct{} // holds a token; a channel, so that waiting for the index ends with a context
	index *pathIndex    // nil until built
}

// NewSymbolPath returns a finder for these files and, recursively, folders. Nothing is read before the first Find.
func NewSymbolPath(paths ...string) *SymbolPath {
	p := &SymbolPath{paths: slices.Clone(paths), lock: make(chan struct{}, 1)}
	p.lock <- struct{}{}
	return p
}

// A pathIndex is what there was under the paths when they were walked.
type pathIndex struct {
	files    map[ID][]string // sorted
	elfFiles int             // with and without an ID
	faults   []Attempt       // what could not be looked at
}

const maxFaults = 16 // Attempts about unreadable folders kept for --explain

// Find returns the file whose note holds q.ID. Of several, Debug and Alt queries prefer one with debug information, then one
// with a full symbol table; Executable ones one that holds its code; then the path that sorts first.
//
// The first Find walks the paths, reading notes in 8 goroutines that end before it returns; others wait for it. The
// index is built once: files that come later are not found. A walk that ctx ends is done again by the next Find.
func (p *SymbolPath) Find(ctx context.Context, q Query, note func(Attempt)) (*File, error) {
	s := search{ctx: ctx, where: "symbol path", query: q, note: note}
	if q.ID.IsZero() {
		s.tell(s.where, "without a build ID no file can be looked up")
		return nil, s.miss()
	}
	index, err := p.built(ctx)
	if err != nil {
		return nil, fmt.Errorf("build ID %s: %s: %w", q.ID, s.where, err)
	}
	found := index.files[q.ID]
	if len(found) == 0 {
		for _, fault := range index.faults {
			s.tell(fault.Where, fault.Said)
		}
		for _, path := range p.paths {
			s.tell(path, fmt.Sprintf("no file with this build ID among %d ELF files", index.elfFiles))
		}
		return nil, s.miss()
	}
	var best *File
	bestRank := -1
	for _, path := range found[:min(len(found), maxCandidates)] {
		f := s.tryVerified(path)
		if f == nil {
			continue
		}
		rank := 0
		if len(found) > 1 {
			rank = rankOf(f, q.Kind)
		}
		if rank > bestRank {
			f, best, bestRank = best, f, rank
		}
		if f != nil {
			f.Close()
		}
	}
	if best == nil {
		return nil, s.miss()
	}
	return best, nil
}

// rankOf says how well a file serves a kind of query: more is better.
func rankOf(f *File, kind Kind) int {
	o, err := object.Open(f, f.size, nil)
	if err != nil {
		return 0
	}
	defer o.Close()
	rank := 1
	if kind == Executable {
		for _, s := range o.Sections() {
			if s.Flags&elf.SHF_EXECINSTR != 0 && s.Type != elf.SHT_NOBITS {
				return 2
			}
		}
		return rank
	}
	if s, ok := o.Section(".symtab"); ok && s.Type != elf.SHT_NOBITS {
		rank = 2
	}
	if s, ok := o.Section(".debug_info"); ok && s.Type != elf.SHT_NOBITS {
		rank = 3
	}
	return rank
}

// built returns the index, and builds it if that has not been done.
func (p *SymbolPath) built(ctx context.Context) (*pathIndex, error) {
	select {
	case <-p.lock:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { p.lock <- struct{}{} }()
	if p.index == nil {
		index, err := buildIndex(ctx, p.paths)
		if err != nil {
			return nil, err
		}
		p.index = index
	}
	return p.index, nil
}

// An indexer walks the paths in one goroutine, its caller's, and reads notes in others.
type indexer struct {
	ctx       context.Context
	files     chan string
	seen      int // files sent
	mu        sync.Mutex
	index     pathIndex
	elf       atomic.Int64
	exhausted error // what kept the index from being whole, if anything did; under mu
}

func buildIndex(ctx context.Context, paths []string) (*pathIndex, error) {
	x := indexer{ctx: ctx, files: make(chan string, 256)}
	x.index.files = make(map[ID][]string)
	var readers sync.WaitGroup
	for range indexReaders {
		readers.Go(func() {
			for path := range x.files {
				x.read(path)
			}
		})
	}
	for _, path := range paths {
		x.walk(path)
	}
	close(x.files)
	readers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if x.exhausted != nil {
		return nil, x.exhausted
	}
	for _, files := range x.index.files {
		slices.Sort(files)
	}
	slices.SortFunc(x.index.faults, func(a, b Attempt) int { return strings.Compare(a.Where, b.Where) })
	x.index.elfFiles = int(x.elf.Load())
	return &x.index, nil
}

// walk sends the files under root to the readers. Symbolic links to files are followed, those to folders are not, but for root.
func (x *indexer) walk(root string) {
	info, err := os.Stat(root)
	if err != nil {
		x.fault(root, err)
		return
	}
	if !info.IsDir() {
		x.send(root)
		return
	}
	// A walk of the folder's contents starts behind root even where that is a link. It returns no error: the function returns none but
	// to end it.
	_ = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		file := filepath.Join(root, filepath.FromSlash(name))
		switch {
		case x.ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			x.fault(file, err)
		case d.Type().IsRegular():
			if !x.send(file) {
				return fs.SkipAll
			}
		case d.Type()&fs.ModeSymlink != 0:
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && !x.send(file) {
				return fs.SkipAll
			}
		}
		return nil
	})
}

// send gives a file to the readers, unless there have been too many.
func (x *indexer) send(file string) bool {
	if x.seen == maxIndexed {
		x.fault(file, fmt.Errorf("not indexed, nor what comes behind it: the limit is %d files", maxIndexed))
		x.seen++
	}
	if x.seen > maxIndexed {
		return false
	}
	x.seen++
	select {
	case x.files <- file:
		return true
	case <-x.ctx.Done():
		return false
	}
}

// read enters one file into the index if it has an ID. Files that are none of ours are no faults: the folders are the operator's.
func (x *indexer) read(path string) {
	if x.ctx.Err() != nil {
		return
	}
	f, size, err := openRegular(path)
	if err != nil {
		x.fault(path, err)
		return
	}
	defer f.Close()
	var magic [len(elf.ELFMAG)]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil || string(magic[:]) != elf.ELFMAG {
		return
	}
	x.elf.Add(1)
	id, err := Read(f, size)
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.index.files[id] = append(x.index.files[id], path)
}

func (x *indexer) fault(path string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if exhausted(err) && x.exhausted == nil {
		x.exhausted = err
	}
	if len(x.index.faults) < maxFaults {
		x.index.faults = append(x.index.faults, Attempt{path, said(err)})
	}
}
