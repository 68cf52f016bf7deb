package debuginfod

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// missFor returns how long a miss is believed.
func (c *Cache) missFor() time.Duration {
	root, err := c.open()
	if err != nil {
		return defaultMiss
	}
	defer root.Close()
	return c.control(root, missFile, defaultMiss, false)
}

// rememberMiss writes a miss for k to the cache. If it cannot be written, the servers are asked
// again next time.
func (c *Cache) rememberMiss(k key) {
	root, err := c.create()
	if err != nil {
		return
	}
	defer root.Close()
	c.control(root, missFile, defaultMiss, true)
	dir := k.id.String()
	for range 3 { // another process may be removing the directory because it is empty
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
			break
		}
	}
	c.boundMisses(root)
}

// A missCount keeps the number of misses on disk below its limits.
type missCount struct {
	limits missLimits
	left   int // misses that may be written before the next count
}

type missLimits struct{ most, kept, look int }

// boundMisses is called after each miss that was written. Every limits.look misses it counts those
// on disk, of all processes, and removes the oldest if there are too many. Two processes that write
// misses at the same time stay below the bound; each further process may exceed it by missLook.
func (c *Cache) boundMisses(root *os.Root) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &c.misses
	if m.left--; m.left > 0 {
		return
	}
	n := trimMisses(root, m.limits)
	m.left = max(1, min(m.limits.look, m.limits.most-n))
}

// A miss is an empty file of the cache.
type miss struct {
	dir, name string
	made      time.Time
}

// trimMisses removes the oldest misses if there are more than l.kept, and the directories that hold
// nothing else. It returns how many are left. It never holds more than twice l.most of them in
// memory.
func trimMisses(root *os.Root, l missLimits) int {
	top, err := root.Open(".")
	if err != nil {
		return 0
	}
	defer top.Close()
	var all []miss
	prune := func(n int) {
		slices.SortFunc(all, func(a, b miss) int { return cmp.Or(b.made.Compare(a.made), cmp.Compare(a.dir, b.dir)) })
		for _, m := range all[min(n, len(all)):] {
			root.Remove(m.dir + "/" + m.name)
			root.Remove(m.dir) // fails unless it is empty
		}
		all = all[:min(n, len(all))]
	}
	for {
		dirs, err := top.ReadDir(1024)
		for _, d := range dirs {
			if d.IsDir() && hexName(d.Name()) {
				all = appendMisses(all, root, d.Name())
			}
		}
		if len(all) > 2*l.most {
			prune(l.most)
		}
		if err != nil || len(dirs) == 0 {
			break
		}
	}
	if len(all) > l.kept {
		prune(l.kept)
	}
	return len(all)
}

// appendMisses appends the misses in the directory of a build ID: at most two.
func appendMisses(all []miss, root *os.Root, dir string) []miss {
	for _, word := range []string{"debuginfo", "executable"} {
		if info, err := root.Lstat(dir + "/" + word); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			all = append(all, miss{dir, word, info.ModTime()})
		}
	}
	return all
}

// forget removes k's file, whose content is that of another build.
func (c *Cache) forget(k key) {
	if root, err := c.open(); err == nil {
		defer root.Close()
		root.Remove(k.path())
		root.Remove(k.id.String()) // fails unless it is empty
	}
}
