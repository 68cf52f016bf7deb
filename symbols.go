// Package symfilter filters logs as the command of that name does. It turns addresses into
// function, file and line, from debug files found by build ID.
//
//	f, err := symfilter.New(os.Stdout, symfilter.Defaults())
//	…
//	io.Copy(f, log)
//	f.Close()
//
// Programs that filter many logs, or that call a
// [github.com/symfilter/symfilter/symbolize.Symbolizer] themselves, use [Symbols.Open]. It returns
// a symbolizer and a cache with the command's finders, servers and budgets.
package symfilter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// DebugDir is the system's folder of debug files.
const DebugDir = "/usr/lib/debug"

// systemDebugDir is DebugDir, or a test's folder in its place.
var systemDebugDir = DebugDir

// MaxMemory / cacheShare is the memory for rendered frames. For the default MaxMemory, this is
// [filter.DefaultCacheSize].
const cacheShare = 16

// Symbols selects where debug files are found. The zero value uses the system's folder and the
// module's own path, keeps indexes in the user's cache, and uses no server.
type Symbols struct {
	// SymbolPaths are files, folders and zip files to search for build IDs. IDsFiles are
	// ids.txt files. BuildIDDirs are trees of .build-id, and DebugDirs trees of GDB's layout.
	// They are searched in this order. The system's [DebugDir] follows, unless
	// NoDefaultDebugDirs is set.
	SymbolPaths []string
	IDsFiles    []string
	BuildIDDirs []string
	DebugDirs   []string

	NoDefaultDebugDirs bool

	// NoPaths prevents opening files at paths that a log or a report names.
	NoPaths bool

	// Servers are debuginfod servers, asked last. The zero value uses no server and no
	// debuginfod cache; [debuginfod.OptionsFromEnv] returns the options in the environment. A
	// Client that is not nil replaces Servers; the caller closes it.
	Servers debuginfod.Options
	Client  *debuginfod.Client

	// CacheDir is the folder for data that can be computed again: indexes of debug files, lists
	// of the build IDs in folders, and spilled sections. Empty: [UserCacheDir]. NoCache uses no
	// folder. NoIndex uses no indexes of debug files.
	CacheDir string
	NoCache  bool
	NoIndex  bool

	// MaxMemory bounds the memory of all debug files and rendered frames together, in bytes. 0:
	// [symbolize.DefaultMaxMemory].
	MaxMemory int64

	// Symbolizer holds further options of the symbolizer. Open sets its MaxMemory, SpillDir and
	// IndexDir, adds to its Servers, and sets its Finders and LinkDirs if they are nil.
	Symbolizer symbolize.Options
}

// An Opened has the symbolizer, cache and debuginfod client that Symbols.Open has made. Many
// filters, on many goroutines, may share it.
type Opened struct {
	Symbolizer *symbolize.Symbolizer
	Cache      *filter.Cache      // cache of rendered frames
	Servers    *debuginfod.Client // nil if there is neither a server nor a debuginfod cache

	// SymbolPath is the finder for SymbolPaths; nil if SymbolPaths is empty.
	SymbolPath *buildid.SymbolPath

	closers []io.Closer
	trees   []*buildid.Tree
	local   []symbolize.Finder
}

// UserCacheDir returns the command's folder of indexes: below XDG_CACHE_HOME, or below the
// user's cache. It is empty if the environment names neither.
func UserCacheDir() string {
	dir := os.Getenv("XDG_CACHE_HOME") // used on every system, if it is set
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return ""
		}
	}
	return filepath.Join(dir, "symfilter")
}

// Open opens the symbols. It searches and fetches nothing before the first lookup of a build ID. It
// fails only if Servers is invalid. The caller closes the Opened.
func (s Symbols) Open() (*Opened, error) {
	if s.MaxMemory == 0 {
		s.MaxMemory = symbolize.DefaultMaxMemory
	}
	if !s.NoDefaultDebugDirs && !slices.Contains(s.DebugDirs, systemDebugDir) {
		s.DebugDirs = append(slices.Clip(s.DebugDirs), systemDebugDir)
	}
	if s.CacheDir == "" {
		s.CacheDir = UserCacheDir()
	}
	if s.NoCache {
		s.CacheDir = ""
	}
	opened := &Opened{Cache: filter.NewCache(s.MaxMemory / cacheShare)}
	o := s.Symbolizer
	if o.Finders == nil {
		o.Finders = s.finders(opened)
	}
	if o.LinkDirs == nil {
		o.LinkDirs = slices.Concat(s.DebugDirs, s.BuildIDDirs)
	}
	opened.local = o.Finders
	o.MaxMemory = s.MaxMemory / cacheShare * (cacheShare - 1)
	o.SpillDir, o.IndexDir = s.CacheDir, s.CacheDir
	if s.NoIndex {
		o.IndexDir = ""
	}
	opened.Servers = s.Client
	if s.Client == nil && (len(s.Servers.URLs) > 0 || s.Servers.CacheDir != "") {
		client, err := debuginfod.New(s.Servers)
		if err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		opened.Servers = client
		opened.closers = append(opened.closers, client)
	}
	if opened.Servers != nil {
		o.Servers = append(o.Servers, opened.Servers)
	}
	opened.Symbolizer = symbolize.New(o)
	return opened, nil
}

// finders returns the finders of debug files on this machine: for the files and folders in Symbols,
// the system's folder, and last the module's own path.
func (s *Symbols) finders(opened *Opened) (all []symbolize.Finder) {
	if len(s.SymbolPaths) > 0 {
		p := buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: s.SymbolPaths, CacheDir: s.CacheDir})
		opened.closers = append(opened.closers, p)
		opened.SymbolPath = p
		all = append(all, p)
	}
	for _, path := range s.IDsFiles {
		all = append(all, buildid.NewIDsFile(path))
	}
	for _, dir := range slices.Concat(s.BuildIDDirs, s.DebugDirs) {
		tree := buildid.NewTree(dir)
		opened.trees = append(opened.trees, tree)
		all = append(all, tree)
	}
	if s.NoPaths {
		return all
	}
	return append(all, buildid.ModulePath{}, report.Files{})
}

// A completer completes build IDs. A *buildid.Tree implements it, for this module only: see
// [access.BuildID].
type completer interface {
	Complete(prefix buildid.ID) buildid.ID
}

// Complete returns the build ID that begins with the bytes of prefix, from the first tree that has
// exactly one such ID. It returns zero if there is no such tree, or if prefix has fewer than two
// bytes. Complete implements a method of [filter.Dialects].
func (o *Opened) Complete(prefix buildid.ID) (id buildid.ID) {
	for _, tree := range o.trees {
		if id = access.BuildID(tree).(completer).Complete(prefix); !id.IsZero() {
			break
		}
	}
	return id
}

// Find returns the first file on this machine that matches q and for which accept returns true. The
// caller closes the file. Find does not use servers or their cache. The error wraps
// [io/fs.ErrNotExist] if there is no such file.
func (o *Opened) Find(ctx context.Context, q buildid.Query, accept func(*buildid.File) bool) (*buildid.File, error) {
	var failed error
	for _, finder := range o.local {
		f, err := finder.Find(ctx, q, func(buildid.Attempt) {})
		switch {
		case err == nil && accept(f):
			return f, nil
		case err == nil:
			f.Close()
		case failed == nil && !errors.Is(err, fs.ErrNotExist):
			failed = err
		}
	}
	if failed == nil {
		failed = fmt.Errorf("no file for build ID %s: %w", q.ID, fs.ErrNotExist)
	}
	return nil, failed
}

// Close ends all searches and downloads, and closes every file.
func (o *Opened) Close() error {
	var errs []error
	if o.Symbolizer != nil {
		errs = append(errs, o.Symbolizer.Close())
	}
	for _, c := range o.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
