package follow

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
	"github.com/symfilter/symfilter/internal/wording"
)

// vanish is the time after which a missing file that matched a pattern is forgotten.
const vanish = time.Minute

// unlistable returns, in parentheses, the reason why the last folder before the wildcards of
// pattern cannot be listed. It returns "" if that folder can be listed or does not exist.
func unlistable(pattern string) string {
	dir := filepath.Dir(pattern)
	for hasMeta(dir) {
		dir = filepath.Dir(dir)
	}
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		var f *os.File
		if f, err = os.Open(dir); err == nil {
			f.Close()
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return fmt.Sprintf(" (%s: %v)", dir, wording.Cause(err))
}

func (r *run) notifyUnmatched() {
	for _, p := range r.patterns {
		if paths, _ := filepath.Glob(p); len(paths) == 0 {
			r.notify(Event{Name: p, Message: "matches no file yet" + unlistable(p) + "; waiting for one"})
		}
	}
}

// match starts to follow the matching files, except rotated files of a followed file. atStart is
// set in the first call. With Start Beginning and without a checkpoint, matching rotated files are
// then read as the earlier part of the log.
func (r *run) match(atStart bool) {
	dirs := make(map[string]bool)
	pattern := make(map[string]string) // pattern of each path
	for _, p := range r.patterns {
		for _, dir := range patternDirs(p) {
			dirs[dir] = true
		}
		paths, _ := filepath.Glob(p) // the pattern was checked before
		for _, path := range paths {
			if r.sources[path] == nil && !lineage.IsPacked(path) && !r.excluded.match(path) {
				pattern[path] = p
			}
		}
	}
	var before []string // paths with rotated files
	for _, path := range slices.Sorted(maps.Keys(pattern)) {
		if base := lineage.RotatedBase(path, func(base string) bool { return r.sources[base] != nil || pattern[base] != "" }); base != "" {
			before = append(before, base)
			continue
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || r.saver.isStateFile(path) || r.o.Skip != nil && r.o.Skip(info) {
			continue
		}
		s := r.newSource(path, path)
		s.schedule.matched = true
		if atStart && !r.saver.knows(pattern[path]) {
			s.origin.start = r.o.Start
		} else {
			s.origin.since = r.saver.since
		}
		r.put(s)
		r.saver.restore(s)
		r.ready(s)
	}
	for _, base := range before {
		if s := r.sources[base]; s != nil && atStart && s.origin.start == Beginning && s.origin.saved == nil && s.origin.since.IsZero() {
			s.origin.whole = true
		}
	}
	if len(r.patterns) > 0 {
		r.watcher.watchPatterns(dirs)
	}
}

func (r *run) put(s *source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources[s.path] = s
}

// patternDirs returns the folders in which a new name may match pattern.
func patternDirs(pattern string) (dirs []string) {
	names := parts(pattern)
	head := filepath.VolumeName(pattern) + string(filepath.Separator)
	for _, name := range names {
		if hasMeta(name) {
			found, _ := filepath.Glob(head)
			for _, dir := range found {
				if real, err := filepath.EvalSymlinks(dir); err == nil {
					dirs = append(dirs, real)
				}
			}
		}
		head = filepath.Join(head, name)
	}
	return dirs
}

// forget drops files that matched a pattern and have been gone for longer than vanish.
func (r *run) forget() {
	r.saver.forget(time.Now())
	for path, s := range r.sources {
		if !s.schedule.matched || s.schedule.running || s.schedule.queued || s.cur != nil || len(s.old) > 0 {
			continue
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			s.schedule.lost = time.Time{}
			continue
		}
		switch {
		case s.schedule.lost.IsZero():
			s.schedule.lost = time.Now()
		case time.Since(s.schedule.lost) > vanish:
			r.mu.Lock()
			delete(r.sources, path)
			r.mu.Unlock()
			r.watcher.watch(s, nil)
			s.search.lineage.Drop()
			r.saver.drop(s.path)
			delete(r.dirty, s)
			delete(r.restless, s)
			if err := s.finish(nil, false, false); err != nil {
				r.err = err
			}
		}
	}
}
