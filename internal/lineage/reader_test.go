package lineage

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"
)

// A modelReader reads the log of a modelDisk in the order that its Log determines.
type modelReader struct {
	d       *modelDisk
	log     *Log
	saved   *Entry // checkpoint, until its files are found
	cur     *modelContent
	old     []*modelContent // files before cur, kept open for late lines
	ahead   []*modelContent // files after cur
	read    int64           // time of the last read of cur
	closes  bool            // rotated files are closed after they were read to their end
	printed map[string]int  // number of prints of each line
	order   []string        // lines in the order of printing
}

func newModelReader(d *modelDisk, closes bool, printed map[string]int) *modelReader {
	r := &modelReader{d: d, closes: closes, printed: printed, log: NewLog("app.log", NewRecords())}
	r.log.Unpacks = true
	return r
}

func contentsIn(files ...*modelContent) (all []Content) {
	for _, f := range files {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

// reading returns the files that are being read, oldest first.
func (r *modelReader) reading() []Content { return contentsIn(append(slices.Clone(r.old), r.cur)...) }

func (r *modelReader) held() []Content { return append(r.reading(), contentsIn(r.ahead...)...) }

// look runs turns until nothing is left to do.
func (r *modelReader) look() {
	for range 16 {
		if !r.turn() {
			return
		}
	}
	panic("turns without an end")
}

func (r *modelReader) print(lines []byte) {
	for len(lines) > 0 {
		line := string(lines[:lineSize])
		r.printed[line]++
		r.order = append(r.order, line)
		lines = lines[lineSize:]
	}
}

// turn examines the files once, and reports whether another turn may be needed.
func (r *modelReader) turn() (more bool) {
	if r.cur == nil {
		r.readLate()
		return r.begin()
	}
	now := r.d.files[logPath]
	same := now != nil && now.ino == r.newest().ino
	if !same {
		r.discover(Predecessor{Content: r.cur})
	}
	s := r.cur.state
	if same && len(r.ahead) == 0 && s.Look == 0 && (r.cur.mtime != s.ModTime.Unix() || int64(len(r.cur.data)) != s.Size) && r.truncated(false) {
		return true
	}
	r.readLate()
	lines, truncated := r.cur.read()
	if truncated {
		r.truncated(true)
		return true
	}
	r.print(lines)
	r.read = r.d.clock
	if same && len(r.ahead) == 0 {
		r.log.LastChange = r.cur.state.ModTime
		return false
	}
	if len(r.ahead) == 0 {
		if !r.exists(r.cur) {
			r.finish(r.cur)
			r.cur = nil
		}
		return false
	}
	if r.cur.packed || r.closes {
		r.finish(r.cur)
	} else {
		r.old = append(r.old, r.cur)
	}
	next := r.ahead[0]
	r.ahead = r.ahead[1:]
	r.makeCurrent(next)
	return true
}

func (r *modelReader) newest() *modelContent {
	if n := len(r.ahead); n > 0 {
		return r.ahead[n-1]
	}
	return r.cur
}

func (r *modelReader) makeCurrent(c *modelContent) {
	r.cur, r.log.Begun, r.read = c, true, r.d.clock
	if r.d.files[logPath] == c.modelFile {
		r.log.LastChange = c.state.ModTime
	}
}

func (r *modelReader) exists(c *modelContent) bool {
	for _, f := range r.d.files {
		if f == c.modelFile {
			return true
		}
	}
	return false
}

func (r *modelReader) finish(c *modelContent) {
	s := c.state
	r.log.Finish(MarkAt(s, s.Off, s.Recent), !r.exists(c))
}

// readLate reads lines added to files before the current one, and closes removed files.
func (r *modelReader) readLate() {
	r.old = slices.DeleteFunc(r.old, func(c *modelContent) bool {
		lines, _ := c.read()
		r.print(lines)
		if !r.exists(c) {
			r.finish(c)
			return true
		}
		return false
	})
}

// discover mirrors source.discover of package follow.
func (r *modelReader) discover(before Predecessor) {
	var now *modelContent
	var name Content
	if f := r.d.files[logPath]; f != nil {
		now = f.open(logPath)
		name = now
	}
	beside := r.d.family()
	unseen, _ := r.log.Successors(context.Background(), r.d, beside, before, name, r.held(), contentsIn(r.old...))
	for _, c := range r.held() {
		for _, f := range slices.Concat(beside.Files, beside.Archives) {
			if c := c.(*modelContent); f.ID == c.state.ID {
				c.state.Path = f.Path
			}
		}
	}
	claimed, late := r.log.Take(r.d, beside, name, unseen)
	r.old = append(r.old, r.steps(late)...)
	r.ahead = append(r.ahead, r.steps(claimed)...)
	sorted := contentsIn(r.ahead...)
	r.log.SortByAge(sorted, r.reading(), beside, "")
	for i, c := range sorted {
		r.ahead[i] = c.(*modelContent)
	}
	if now == nil || slices.ContainsFunc(r.held(), func(c Content) bool { return c.State().ID == now.state.ID }) {
		return
	}
	from, read := r.log.Known(now)
	if r.log.Claim(now) == nil {
		if read {
			now.seek(from)
		}
		r.ahead = append(r.ahead, now)
	}
}

// steps returns the files of steps, with their read offsets set.
func (r *modelReader) steps(steps []Step) (all []*modelContent) {
	for _, s := range steps {
		c := s.Content.(*modelContent)
		if before := c.data[max(0, s.From-RecentSize):s.From]; !bytes.Equal(before, s.Recent) {
			panic(fmt.Sprintf("a step from %d has %q before it, not %q", s.From, s.Recent, before))
		}
		c.seek(s.From)
		all = append(all, c)
	}
	return all
}

// truncated continues with copies of the old content, and then at the beginning of the file. If
// there are no copies and sure is not set, it does nothing and returns false.
func (r *modelReader) truncated(sure bool) bool {
	var now Content
	if f := r.d.files[logPath]; f != nil {
		now = f.open(logPath)
	}
	c := r.cur
	steps, _, _ := r.log.Copies(context.Background(), r.d, r.d.family(), Truncated{c, time.Unix(r.read, 0)}, now, r.held(), contentsIn(r.old...))
	if len(steps) == 0 && !sure {
		return false
	}
	if s := c.state; sure && len(s.Recent) > 0 {
		r.log.AddGone(MarkAt(s, s.Look, s.Recent))
	}
	c.look()
	c.seek(0)
	if copies := r.steps(steps); len(copies) > 0 {
		r.ahead = slices.Concat(copies[1:], []*modelContent{c}, r.ahead)
		r.makeCurrent(copies[0])
	}
	return true
}

// begin opens the first file, or the files of the checkpoint.
func (r *modelReader) begin() bool {
	if r.saved != nil {
		return r.resume()
	}
	r.discover(Predecessor{LeavesArchives: !r.log.Begun})
	if len(r.ahead) == 0 {
		return false
	}
	next := r.ahead[0]
	r.ahead = r.ahead[1:]
	r.makeCurrent(next)
	return true
}

// resume continues at the read offsets of the checkpoint.
func (r *modelReader) resume() bool {
	var now Content
	if f := r.d.files[logPath]; f != nil {
		now = f.open(logPath)
	}
	folder, _ := Open(r.d, r.d.family(), now)
	s, _ := r.log.Resume(context.Background(), r.d, *r.saved, folder)
	if s.Found.Content == nil && now == nil && !s.HasSuccessor() {
		return false
	}
	s.FindOlder(context.Background())
	places := r.saved.Reading
	var last Place
	if n := len(places); n > 0 {
		last = places[n-1]
	}
	r.log.Begun, r.saved = true, nil
	s.Record()
	for _, o := range s.Older {
		if o.Content != nil && r.log.Claim(o.Content) == nil {
			r.old = append(r.old, r.steps([]Step{o.Step})...)
		}
	}
	found := s.Found
	if found.Content == nil && last.Len > 0 {
		found = s.FindCopy()
	}
	if found.Content != nil && r.log.Claim(found.Content) == nil {
		r.makeCurrent(r.steps([]Step{found})[0])
		return true
	}
	r.discover(Predecessor{})
	if len(r.ahead) > 0 {
		next := r.ahead[0]
		r.ahead = r.ahead[1:]
		r.makeCurrent(next)
		return true
	}
	return false
}

func (r *modelReader) checkpoint() *Entry {
	if r.saved != nil {
		return r.saved
	}
	c := r.log.Entry(r.held())
	for _, f := range r.reading() {
		s := f.State()
		p := Place{Mark: MarkAt(s, s.Off, s.Recent)}
		if s.Size > s.Off {
			p.Size = s.Size
		}
		c.Reading = append(c.Reading, p)
	}
	c.Current = len(c.Reading) > 0
	c.Read = slices.Clone(c.Read)
	return &c
}
