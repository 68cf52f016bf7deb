package filter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/judge"
)

// Bounds of the search for files in Dialects.Candidates, which are listed once for a log.
const (
	maxCandidateFiles = 512 // files that are listed, and opened until there are maxCandidates
	maxCandidateDepth = 3   // folders below a folder of Candidates, as in DIR/.build-id/ab
	maxCandidates     = 24  // files that are tried for each trace: they stay open between traces
)

// unnamed returns the files that may contain the address of a frame without a module: the
// operator's Images, and files that the log names. Without Images, it adds the candidates.
func (t *tracer) unnamed() (all []*judge.Image) {
	for i := range t.opt.Images {
		all = append(all, t.imageOfOperator(&t.opt.Images[i]))
	}
	for _, path := range t.reader.Facts().Paths() {
		if len(all) >= maxUnnamed {
			break
		}
		m := t.imageAt(path)
		m.Guessed = true // the log does not name the file for the frame
		all = append(all, m)
	}
	if len(t.opt.Images) == 0 {
		all = append(all, t.candidates()...)
	}
	return all
}

// candidates returns at most maxCandidates files from Dialects.Candidates and its folders. It
// returns only files with code and without a fixed address: calls may show where such a file was
// loaded. If several files have one build ID, as a program and its stripped copy have, it returns
// only the largest.
func (t *tracer) candidates() (all []*judge.Image) {
	fs := &t.files
	if !fs.listed {
		fs.listed = true
		for _, path := range t.opt.Candidates[:min(len(t.opt.Candidates), maxFolders)] {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				fs.candidates = append(fs.candidates, candidateFile{path, info.Size()})
				continue
			}
			fs.candidates = filesBelow(fs.candidates, path, maxCandidateDepth)
		}
	}
	chosen := make(map[buildid.ID]int) // by build ID: the index in all of its largest copy so far
	var kept []candidateFile
	for _, c := range fs.candidates {
		if len(all) == maxCandidates {
			break
		}
		m := imageOf(fs.images.Named(c.path))
		if m.Err != nil || m.Fixed || !m.File.HasCode() {
			continue
		}
		m.Guessed = true
		at, copied := chosen[m.ID]
		switch {
		case m.ID.IsZero() || !copied:
			chosen[m.ID] = len(all)
			all, kept = append(all, m), append(kept, c)
		case c.size > kept[at].size:
			all[at], kept[at] = m, c
		}
	}
	fs.candidates = kept // files that are not returned are not opened for the next trace
	return all
}

type candidateFile struct {
	path string
	size int64
}

// filesBelow appends regular files in a folder and its subfolders down to depth, until there are
// maxCandidateFiles.
func filesBelow(files []candidateFile, folder string, depth int) []candidateFile {
	dir, err := os.Open(folder)
	if err != nil {
		return files
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(4 * maxCandidateFiles) // entries read before an error are used
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if len(files) == maxCandidateFiles {
			break
		}
		path := filepath.Join(folder, e.Name())
		switch info, err := os.Stat(path); { // a tree of build IDs may have symbolic links to files
		case err != nil:
		case e.IsDir() && depth > 0:
			files = filesBelow(files, path, depth-1)
		case info.Mode().IsRegular():
			files = append(files, candidateFile{path, info.Size()})
		}
	}
	return files
}
