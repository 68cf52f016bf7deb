package lineage

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"
)

type modelDisk struct {
	files map[string]*modelFile // by name
	next  uint64                // inode of the next file
	freed uint64                // inode of the last removed file; 0: not to be reused
	clock int64                 // seconds
	lines int                   // lines written so far
}

type modelFile struct {
	ino    uint64
	data   []byte
	mtime  int64
	packed bool
	copied bool // no process writes to it
	closed bool // at the last look, the file, or the file of the archive, was not open
}

type modelContent struct {
	*modelFile
	state State
}

func (c *modelContent) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(c.data).ReadAt(p, off)
}

func (c *modelContent) State() State { return c.state }
func (c *modelContent) Close()       {}

func (f *modelFile) open(path string) *modelContent {
	c := &modelContent{modelFile: f, state: State{File: f.at(path)}}
	c.look()
	c.state.Off, c.state.Look = 0, 0
	if f.packed {
		c.state.Length = int64(len(f.data))
	}
	return c
}

// at returns the file at this path as a listing shows it.
func (f *modelFile) at(path string) File {
	return File{Path: path, ID: ID{1, f.ino}, ModTime: time.Unix(f.mtime, 0), Size: int64(len(f.data)), Packed: f.packed, Of: logPath}
}

// look sets the state of the open file to its present size, time and first bytes.
func (c *modelContent) look() {
	c.state.Size, c.state.ModTime = int64(len(c.data)), time.Unix(c.mtime, 0)
	c.state.Head = bytes.Clone(c.data[:min(len(c.data), HeadSize)])
}

func (c *modelContent) seek(off int64) {
	c.state.Off, c.state.Look = off, off
	c.state.Recent = bytes.Clone(c.data[max(0, off-RecentSize):off])
}

// read returns the lines after the read offset, or truncated if the file no longer has the bytes
// that were read.
func (c *modelContent) read() (lines []byte, truncated bool) {
	s := c.state
	if int64(len(c.data)) < s.Look || !bytes.HasPrefix(c.data, s.Head) || !bytes.HasSuffix(c.data[:s.Look], s.Recent) {
		return nil, true
	}
	lines = c.data[s.Off:]
	c.look()
	c.state.Head = bytes.Clone(c.state.Head)
	c.seek(int64(len(c.data)))
	return lines, false
}

func (d *modelDisk) Open(f File) (Content, error) {
	if m := d.files[f.Path]; m != nil {
		return m.open(f.Path), nil
	}
	return nil, fs.ErrNotExist
}

func (d *modelDisk) Look(c Content) (State, error) {
	now := *c.(*modelContent)
	now.look()
	return now.state, nil
}

func (d *modelDisk) Keep(Content, File) bool { return true }

func (d *modelDisk) family() *Family {
	f := new(Family)
	var names Names
	for _, path := range slices.Sorted(maps.Keys(d.files)) {
		names = append(names, filepath.Base(path))
	}
	f.Add(logPath, names, func(path string) (File, error) { return d.files[path].at(path), nil })
	return f
}

var _ io.ReaderAt = (*modelContent)(nil)
