package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/sandbox"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

func runIndex(c *config, paths []string, std standard) (int, error) {
	dir := symfilter.UserCacheDir()
	if dir == "" {
		return exitIO, errors.New("index: no folder for indexes: set XDG_CACHE_HOME or HOME")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exitIO, fmt.Errorf("index: cannot create the folder %s for indexes: %w; set XDG_CACHE_HOME to another folder", dir, wording.Cause(err))
	}
	x := indexRun{dir: dir, again: c.again, quiet: c.quiet, out: std.text, errs: std.err}
	if isTerminal(std.err) && !x.quiet {
		x.status.w = std.err
	}
	if !c.noSandbox {
		sandbox.Apply(sandbox.Policy{Write: []string{dir}, OtherProcesses: slices.ContainsFunc(paths, sandbox.OfOtherProcess)})
	}
	debug.SetMemoryLimit(symbolize.DefaultMaxMemory)
	debug.SetGCPercent(200) // the live heap is small, and there is much garbage
	return x.all(ctx, paths), nil
}

// bigFile is the least size in bytes of a file that all processors index together. Smaller files
// have one processor each.
const bigFile = 64 << 20

type indexRun struct {
	dir          string
	again, quiet bool
	out, errs    io.Writer
	status       statusLine

	mu      sync.Mutex
	made    int
	size    int64 // bytes of the indexes made
	found   int
	without int
	failed  int
}

func (x *indexRun) all(ctx context.Context, paths []string) int {
	var small, big []string
	for _, path := range paths {
		x.collect(path, &small, &big)
	}
	cpus := runtime.GOMAXPROCS(0)
	for _, path := range big {
		x.file(ctx, path, cpus)
	}
	var all sync.WaitGroup
	next := make(chan string)
	for range min(cpus, len(small)) {
		all.Go(func() {
			for path := range next {
				x.file(ctx, path, 1)
			}
		})
	}
	for _, path := range small {
		if ctx.Err() == nil {
			next <- path
		}
	}
	close(next)
	all.Wait()
	x.status.set("")
	if !x.quiet {
		fmt.Fprintf(x.out, "%d indexed (%s), %d already indexed, %d with nothing to index, %d failed\n", x.made, mebibytes(x.size), x.found, x.without, x.failed)
	}
	switch {
	case ctx.Err() != nil:
		return exitSignal + int(syscall.SIGINT)
	case x.failed > 0:
		return exitIO
	}
	return exitOK
}

// collect adds path to small or big. For a folder, it adds the ELF files below it.
func (x *indexRun) collect(path string, small, big *[]string) {
	info, err := os.Stat(path)
	if err != nil {
		x.fail(path, wording.Cause(err))
		return
	}
	add := func(path string, size int64) {
		if size >= bigFile {
			*big = append(*big, path)
		} else {
			*small = append(*small, path)
		}
	}
	if !info.IsDir() {
		add(path, info.Size())
		return
	}
	filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			x.fail(path, wording.Cause(err))
			return nil
		}
		if d.IsDir() {
			return nil
		}
		// Stat follows links, and trees of build IDs are full of links
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			if magic := make([]byte, 4); readStart(path, magic) && string(magic) == "\x7fELF" {
				add(path, info.Size())
			}
		}
		return nil
	})
}

// readStart fills b with the first bytes of a file, and reports whether the file has enough.
func readStart(path string, b []byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = io.ReadFull(f, b)
	return err == nil
}

func (x *indexRun) file(ctx context.Context, path string, workers int) {
	if ctx.Err() != nil {
		return
	}
	name := wording.Line(path)
	x.status.set("indexing " + name)
	done, err := access.IndexFile(ctx, path, access.IndexOptions{
		Dir: x.dir, Workers: workers, Again: x.again,
		Progress: func(units, total int) {
			if units%64 == 0 {
				x.status.set(fmt.Sprintf("indexing %s: %d of %d units", name, units, total))
			}
		},
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case errors.Is(err, access.ErrNotIndexed):
		x.without++
	case ctx.Err() != nil:
	case err != nil:
		x.failed++
		x.say(x.errs, "symfilter: index %s: %s\n", name, wording.Line(wording.Cause(err).Error()))
	case done.Found:
		x.found++
	default:
		x.made++
		x.size += done.Size
		if !x.quiet {
			x.say(x.out, "%s %s %s\n", done.ID, mebibytes(done.Size), name)
		}
	}
}

func (x *indexRun) fail(path string, err error) {
	x.failed++
	x.say(x.errs, "symfilter: index %s: %s\n", wording.Line(path), wording.Line(err.Error()))
}

func (x *indexRun) say(w io.Writer, format string, args ...any) {
	besideStatus{w, &x.status, true}.Write(fmt.Appendf(nil, format, args...))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
