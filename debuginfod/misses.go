package debuginfod

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// missFor returns the duration for which a miss is believed: cache_miss_s, or its default.
func (c *diskCache) missFor() time.Duration {
	root, err := c.open()
	if err != nil {
		return defaultMiss
	}
	defer root.Close()
	return c.control(root, missFile, defaultMiss, false)
}

// rememberMiss writes a miss for k to the cache, with the servers without the file. The caller
// calls boundMisses afterwards. If the miss cannot be written, the next run asks the servers again.
func (c *diskCache) rememberMiss(k key, by []serverMiss) {
	root, err := c.create()
	if err != nil {
		return
	}
	defer root.Close()
	c.control(root, missFile, defaultMiss, true)
	dir := k.id.String()
	for range 3 { // another process may remove the directory while it is empty
		root.Mkdir(dir, 0o700)
		info, err := root.Lstat(dir)
		if err != nil {
			continue
		}
		if checkDir(info) != nil {
			return
		}
		if f, info, err := openRegular(root, k.path(), os.O_RDONLY); err == nil {
			f.Close()
			if info.Size() == 0 {
				root.Remove(k.path()) // an expired miss
			}
		}
		if err := makeFile(root, k.path(), "", 0o644); !errors.Is(err, fs.ErrNotExist) {
			if err == nil {
				writeMissedBy(root, k, by)
			}
			break
		}
	}
	c.misses.left.Add(-1)
}

// A missCount keeps the number of misses on disk below its limits.
type missCount struct {
	limits missLimits
	left   atomic.Int64 // misses that may be written before the next count
	mu     sync.Mutex   // held while the misses are counted
}

type missLimits struct{ most, kept, look int }

// boundMisses counts the misses on disk after at most limits.look written misses. It removes the
// oldest if there are too many. No caller waits for it, since it takes seconds in a cache of 50,000
// build IDs. Each other process that writes misses may exceed the bound by limits.look.
func (c *diskCache) boundMisses() {
	m := &c.misses
	if m.left.Load() > 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.left.Load()
	if before > 0 {
		return
	}
	root, err := c.open()
	if err != nil {
		return
	}
	defer root.Close()
	n := trimMisses(root, m.limits)
	m.left.Add(int64(max(1, min(m.limits.look, m.limits.most-n))) - before)
}

// A miss is an empty file of the cache.
type miss struct {
	dir, name string
	made      time.Time
}

// trimMisses removes all but the l.kept newest misses, and directories that become empty. With few
// build IDs it neither counts nor removes misses. It returns an upper bound on the remaining
// misses. It holds about 2*l.most misses in memory at most.
func trimMisses(root *os.Root, l missLimits) int {
	top, err := root.Open(".")
	if err != nil {
		return 0
	}
	defer top.Close()
	if n := countDirs(top, l.most/2+1); 2*n <= l.most {
		return 2 * n
	}
	if _, err := top.Seek(0, io.SeekStart); err != nil {
		return 0
	}
	var all []miss
	prune := func(n int) {
		slices.SortFunc(all, func(a, b miss) int { return cmp.Or(b.made.Compare(a.made), cmp.Compare(a.dir, b.dir)) })
		for _, m := range all[min(n, len(all)):] {
			root.Remove(m.dir + "/" + m.name)
			root.Remove(missedByPath(m.dir, m.name))
			root.Remove(m.dir) // fails unless it is empty
		}
		all = all[:min(n, len(all))]
	}
	for dir := range idDirs(top) {
		if all = appendMisses(all, root, dir); len(all) > 2*l.most {
			prune(l.most)
		}
	}
	if len(all) > l.kept {
		prune(l.kept)
	}
	return len(all)
}

// countDirs returns the number of directories of build IDs. It stops counting at enough.
func countDirs(top *os.File, enough int) (n int) {
	for range idDirs(top) {
		if n++; n == enough {
			break
		}
	}
	return n
}

// idDirs yields the names of the directories of build IDs, at most 1,024 of them in memory.
func idDirs(top *os.File) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			dirs, err := top.ReadDir(1024)
			for _, d := range dirs {
				if d.IsDir() && hexName(d.Name()) && !yield(d.Name()) {
					return
				}
			}
			if err != nil || len(dirs) == 0 {
				return
			}
		}
	}
}

func appendMisses(all []miss, root *os.Root, dir string) []miss {
	for _, word := range []string{"debuginfo", "executable"} {
		if info, err := root.Lstat(dir + "/" + word); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			all = append(all, miss{dir, word, info.ModTime()})
		}
	}
	return all
}

// forget removes k's file, which belongs to another build.
func (c *diskCache) forget(k key) {
	if root, err := c.open(); err == nil {
		defer root.Close()
		root.Remove(k.path())
		root.Remove(k.missedByPath())
		root.Remove(k.id.String()) // fails unless it is empty
	}
}
