package buildid

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// An IDsFile finds files by ids.txt, the list of Fuchsia's build. Each line has a build ID in hex,
// a space and a path. A relative path is relative to the list's folder. A file is used only if its
// note holds the ID. An IDsFile is safe for concurrent use.
type IDsFile struct {
	path string
	lock chan struct{} // a mutex as a channel with one token: a context can end the wait
	list *idsList      // nil until read
}

// NewIDsFile returns a finder for the list at path. It reads nothing before the first Find.
func NewIDsFile(path string) *IDsFile {
	f := &IDsFile{path: path, lock: make(chan struct{}, 1)}
	f.lock <- struct{}{}
	return f
}

// Find returns the file that the list names for q.ID, if its note holds that ID. Among several
// files it chooses as [SymbolPath.Find] does. It reads the list again if the list was changed or
// replaced.
func (f *IDsFile) Find(ctx context.Context, q Query, note func(Attempt)) (*File, error) {
	s := search{ctx: ctx, where: "list " + f.path, query: q, note: note}
	if q.ID.IsZero() {
		s.noteMiss(f.path, "without a build ID no file can be looked up")
		return nil, s.miss()
	}
	list, err := f.read(ctx)
	if err != nil {
		s.failed(f.path, err)
		return nil, s.miss()
	}
	found := list.find(q.ID)
	if len(found) == 0 {
		s.noteMiss(f.path, list.missReason())
		return nil, s.miss()
	}
	for i, path := range found {
		if !filepath.IsAbs(path) {
			found[i] = filepath.Join(filepath.Dir(f.path), path)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	best, _ := s.best(len(found), func(i int) *File { return s.tryVerified(found[i]) })
	if best == nil {
		return nil, s.miss()
	}
	return best, nil
}

// read returns the current list, from memory if the file is unchanged.
func (f *IDsFile) read(ctx context.Context) (*idsList, error) {
	select {
	case <-f.lock:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { f.lock <- struct{}{} }()
	info, err := os.Stat(f.path)
	if err != nil {
		f.list = nil
		return nil, err
	}
	if f.list.isCurrent(info) {
		return f.list, nil
	}
	f.list = nil // only one list may be in memory
	list, err := readIDs(ctx, f.path)
	if err != nil {
		return nil, err
	}
	f.list = list
	return list, nil
}

type idsList struct {
	info    fs.FileInfo
	entries []idsEntry // sorted by ID
	bad     int        // number of malformed lines
	badLine int        // line number of the first bad line
	cut     bool       // the file exceeds the limits, so some of it is missing
}

type idsEntry struct {
	id   ID
	path string
}

// isCurrent reports whether l was read from the file in info, and the file has not changed since.
func (l *idsList) isCurrent(info fs.FileInfo) bool {
	return l != nil && l.info.Size() == info.Size() && l.info.ModTime().Equal(info.ModTime()) && os.SameFile(l.info, info)
}

// find returns the listed paths of id, at most maxCandidates.
func (l *idsList) find(id ID) []string {
	i, _ := slices.BinarySearchFunc(l.entries, id, func(e idsEntry, id ID) int { return cmp.Compare(e.id.s, id.s) })
	var paths []string
	for ; i < len(l.entries) && l.entries[i].id == id && len(paths) < maxCandidates; i++ {
		paths = append(paths, l.entries[i].path)
	}
	return paths
}

// missReason returns the reason for an Attempt if l has no entry for the ID. It adds defects of the
// list, since they may be the cause.
func (l *idsList) missReason() string {
	said := "none of its " + number(len(l.entries), "line") + " has this build ID"
	if l.bad > 0 {
		said += fmt.Sprintf("; %d other lines are not of the form ID PATH (the first is line %d)", l.bad, l.badLine)
	}
	if l.cut {
		said += fmt.Sprintf("; only its first %d lines or %d bytes are read", maxIDsLines, maxIDsBytes)
	}
	return said
}

func readIDs(ctx context.Context, path string) (*idsList, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, min(size, maxIDsBytes))
	n, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := parseIDs(data[:n])
	l.cut = l.cut || size > maxIDsBytes
	l.info = info
	return l, nil
}

// parseIDs parses the lines of a list. It counts malformed lines.
func parseIDs(data []byte) *idsList {
	l := new(idsList)
	for number := 1; len(data) > 0; number++ {
		if number > maxIDsLines {
			l.cut = true
			break
		}
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		digits, path, _ := bytes.Cut(line, []byte(" "))
		path = bytes.TrimLeft(path, " \t")
		id, err := Parse(digits)
		if err != nil || len(digits)%2 != 0 || len(path) == 0 || len(path) > maxPath || bytes.IndexByte(path, 0) >= 0 {
			if l.bad++; l.bad == 1 {
				l.badLine = number
			}
			continue
		}
		l.entries = append(l.entries, idsEntry{id, filepath.FromSlash(string(path))})
	}
	slices.SortStableFunc(l.entries, func(a, b idsEntry) int { return cmp.Compare(a.id.s, b.id.s) })
	return l
}
