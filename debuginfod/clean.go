package debuginfod

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// An item is a file of the cache that cleaning may remove.
type item struct {
	name     string // path below the root
	size     int64
	accessed time.Time
}

// clean removes files that were not read for max_unused_age_s, and directories that were empty for
// as long. It does so once in each clean interval, as elfutils does. It also removes stale
// temporary files, and directories that become empty.
func (c *diskCache) clean(now time.Time) error {
	root, err := c.open()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer root.Close()
	interval := c.control(root, cleanIntervalFile, defaultCleanInterval, true)
	info, err := root.Lstat(cleanIntervalFile)
	if err != nil || now.Sub(info.ModTime()) < interval {
		return err
	}
	root.Chtimes(cleanIntervalFile, now, now) // first: no other process may start cleaning too
	unused := c.control(root, maxUnusedFile, defaultMaxUnused, true)
	return eachDir(root, func(dir string, items []item) {
		removed := false
		for _, it := range items {
			if now.Sub(it.accessed) >= unused {
				removed = root.Remove(it.name) == nil || removed
			}
		}
		removed = removeStale(root, dir, now) || removed
		if info, err := root.Lstat(dir); err == nil && (removed || now.Sub(info.ModTime()) >= unused) {
			root.Remove(dir) // fails unless it is empty
		}
	})
}

// trim removes the least recently read files. most bounds the remaining bytes. trim never removes
// keep, misses, or the records of misses.
func (c *diskCache) trim(most int64, keep string) error {
	root, err := c.open()
	if err != nil {
		return err
	}
	defer root.Close()
	var all []item
	var sum int64
	err = eachDir(root, func(_ string, items []item) {
		for _, it := range items {
			sum += it.size
			if it.name != keep && it.size > 0 && !strings.HasPrefix(path.Base(it.name), missedByPrefix) {
				all = append(all, it)
			}
		}
	})
	slices.SortFunc(all, func(a, b item) int {
		return cmp.Or(a.accessed.Compare(b.accessed), cmp.Compare(a.name, b.name))
	})
	for _, it := range all {
		if sum <= most {
			break
		}
		if root.Remove(it.name) == nil {
			sum -= it.size
			root.Remove(path.Dir(it.name)) // fails unless it is empty
		}
	}
	return err
}

// eachDir calls visit for the directory of each build ID, with the files that may be removed there.
// It skips symbolic links and files with other names. It ends after maxCacheFiles files.
func eachDir(root *os.Root, visit func(dir string, items []item)) error {
	top, err := root.Open(".")
	if err != nil {
		return err
	}
	dirs, err := top.ReadDir(-1)
	top.Close()
	if err != nil {
		return err
	}
	files := 0
	for _, dir := range dirs {
		if !dir.IsDir() || !hexName(dir.Name()) {
			continue
		}
		d, err := root.Open(dir.Name())
		if err != nil {
			continue
		}
		entries, _ := d.ReadDir(maxCacheFiles)
		d.Close()
		var items []item
		for _, e := range entries {
			if !cleanable(e.Name()) {
				continue
			}
			info, err := e.Info()
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			items = append(items, item{dir.Name() + "/" + e.Name(), info.Size(), accessed(info)})
		}
		if files += len(items); files > maxCacheFiles {
			return nil
		}
		visit(dir.Name(), items)
	}
	return nil
}

// cleanable reports whether elfutils' client caches and removes files with this name. Its newer
// versions cache sections and sources, too.
func cleanable(name string) bool {
	return name == "debuginfo" || name == "executable" || strings.HasPrefix(name, "source") || strings.HasPrefix(name, "section")
}
