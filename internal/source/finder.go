package source

import (
	"container/list"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/symbolize"
)

// A Server fetches source files by the build ID of their program and the absolute path in its debug
// information. The error of Source wraps [fs.ErrNotExist] if no server has the file. A
// *debuginfod.Client is a Server.
type Server interface {
	Source(ctx context.Context, id buildid.ID, path string, note func(buildid.Attempt)) ([]byte, error)
}

// Options configure a Finder. The zero value finds nothing.
type Options struct {
	// Symbolizer reads embedded source texts and checksums from debug information. If it is nil,
	// the Finder uses neither.
	Symbolizer *symbolize.Symbolizer

	// Roots are the folders with source files. The Finder does not close them.
	Roots Roots

	// PrefixMap maps paths in debug information to paths on this machine.
	PrefixMap prefixmap.Maps

	// Server is asked for a file that is not found otherwise, if its module has a build ID. If nil,
	// no server is asked.
	Server Server

	// Patience limits how long a lookup waits for the debug file, which may have to be reopened,
	// and for Server; 0 means no wait. After a wait that ends without a file, lookups do not wait
	// for Server until it has sent a file. PerMinute limits the time that all lookups together wait
	// for Server in a minute; 0 means no limit.
	Patience, PerMinute time.Duration

	// MaxMemory bounds the bytes of the kept files; 0 means 48 MiB. The most recently used file is
	// kept even if it is larger (at most 16 MiB).
	MaxMemory int64

	// Around is the number of lines before and after a frame's line.
	Around int

	// Notify is called once for each file used without a checksum, and for each file not used
	// because it is another version. After 16 files of a kind, it is called once for all others.
	//
	// Explain is called for each file, with the place where it was found, or the reason why it is
	// not used.
	//
	// Both get a line of text without control characters. Several goroutines may call them. They
	// must not call the Finder, and may be nil.
	Notify, Explain func(message string)
}

// A Finder finds source files, and keeps them under a budget. Many goroutines may use it. Call
// Close after use.
type Finder struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	entries map[fileKey]*entry
	recent  *list.List // of *entry; the most recently used first
	size    int64
	notices map[string]int // number of notices, by kind
	servers servers
	fetches sync.WaitGroup
}

// A fileKey names a source file: equal paths of two builds may be different files.
type fileKey struct {
	id   buildid.ID
	name string // name of the module, if it has no build ID
	file string // path as recorded in debug information
}

// An entry is a requested file, found or missing.
type entry struct {
	key   fileKey
	place *list.Element
	found sync.Mutex // held while the file is looked for
	text  *text      // nil: not looked for yet
	until time.Time  // time from which a missing file is looked for again
	said  []string   // messages for Options.Explain, while the file is looked for

	told, beyond bool // a notice was given; a line beyond the end was requested
}

// NewFinder returns a Finder.
func NewFinder(o Options) *Finder {
	if o.MaxMemory <= 0 {
		o.MaxMemory = maxKept
	}
	f := &Finder{o: o, entries: make(map[fileKey]*entry), recent: list.New(), notices: make(map[string]int)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.servers.init()
	return f
}

// Close cancels all requests, and waits until they have ended.
func (f *Finder) Close() error {
	f.cancel()
	f.fetches.Wait()
	return nil
}

// Snippet returns the lines around the line of frame, a frame at l. frame.File is the path as
// recorded in debug information, before any prefix map. The result is zero if frame has no line, or
// if its file is missing, is another version, or has not arrived yet.
func (f *Finder) Snippet(l symbolize.Location, frame *symbolize.Frame) (s symbolize.Snippet) {
	if frame.File == "" || frame.Line == 0 || len(frame.File) > maxPath {
		return s
	}
	e, t := f.find(l, frame)
	switch {
	case t.missing != nil:
		return s
	case uint64(frame.Line) > uint64(t.lines):
		f.beyond(e, t, frame)
		return s
	}
	first, lines := t.around(int(frame.Line), max(f.o.Around, 0))
	return symbolize.Snippet{First: uint32(first), Lines: lines, Verified: t.verified, Origin: t.origin}
}

// find returns the entry and the text of frame's file. The first request loads the file. If the
// file was missing but may still appear, a later request loads it again: after the duration soon if
// the file or its debug file is being fetched, otherwise after missFor.
func (f *Finder) find(l symbolize.Location, frame *symbolize.Frame) (*entry, *text) {
	k := fileKey{id: l.ID, file: frame.File}
	if l.ID.IsZero() {
		k.name = l.Name
	}
	f.mu.Lock()
	e := f.entries[k]
	if e == nil {
		e = &entry{key: k}
		e.place = f.recent.PushFront(e)
		f.entries[k] = e
		f.size += e.cost()
	} else {
		f.recent.MoveToFront(e.place)
	}
	f.mu.Unlock()

	e.found.Lock()
	defer e.found.Unlock()
	if t := e.text; t != nil && (!t.retry || time.Now().Before(e.until)) {
		return e, t
	}
	t := f.load(e, l, frame)
	f.mu.Lock()
	if f.entries[k] == e {
		f.size += t.size()
		if e.text != nil {
			f.size -= e.text.size()
		}
	}
	again := missFor
	if errors.Is(t.missing, errSoon) || errors.Is(t.missing, symbolize.ErrPending) {
		again = soon
	}
	first := e.text == nil
	e.text, e.until = t, time.Now().Add(again)
	f.evict()
	f.mu.Unlock()
	if first || t.missing == nil {
		f.explain(e.said)
	}
	e.said = nil
	return e, t
}

// cost returns the bytes that e takes.
func (e *entry) cost() int64 {
	n := int64(entryCost + len(e.key.file) + len(e.key.name))
	if e.text != nil {
		n += e.text.size()
	}
	return n
}

// evict drops the least recently used files until the rest fits the budget, but keeps the most
// recently used one. f.mu is held.
func (f *Finder) evict() {
	for f.size > f.o.MaxMemory && f.recent.Len() > 1 {
		e := f.recent.Back().Value.(*entry)
		f.recent.Remove(e.place)
		delete(f.entries, e.key)
		f.size -= e.cost()
	}
}

var (
	errChanged = errors.New("not the version that was compiled: its checksum differs")
	errNoRoot  = errors.New("not embedded, and no folder of sources is named")
)

// load looks for frame's file: in debug information, below the roots, on servers.
func (f *Finder) load(e *entry, l symbolize.Location, frame *symbolize.Frame) *text {
	known, err := f.known(l, frame)
	if errors.Is(err, symbolize.ErrPending) {
		return &text{missing: err, retry: true}
	}
	if len(known.text) > 0 {
		t := newText(known.text)
		t.origin, t.verified = "embedded", true
		e.say(frame.File, "found in the debug information")
		return t
	}
	path, _ := f.o.PrefixMap.Replace(frame.File)
	t, err := f.local(path, &known)
	if err != nil {
		e.say(frame.File, err.Error())
		if f.o.Server == nil {
			f.changed(e, err)
			return &text{missing: err, retry: true}
		}
		var sent error
		if t, sent = f.remote(l, frame.File, &known); sent != nil {
			e.say(frame.File, sent.Error())
			f.changed(e, errors.Join(err, sent))
			return &text{missing: sent, retry: true}
		}
	}
	e.say(frame.File, "found: "+t.origin)
	if !t.verified {
		f.notice(e, "unverified", t.origin+": not verified: the debug information has no checksum of this source file")
	}
	return t
}

// A compiled holds what the compiler recorded about a source file in debug information: its text or
// its checksum. The zero value means that neither was recorded.
type compiled struct {
	text   []byte // the whole file, a copy; nil: not embedded
	md5    [md5.Size]byte
	hasMD5 bool
}

// A sources reads the texts and checksums of source files in debug information. A Symbolizer
// implements it.
type sources interface {
	Source(ctx context.Context, l symbolize.Location, file string) (text []byte, md5 [md5.Size]byte, hasMD5 bool, err error)
}

func (f *Finder) known(l symbolize.Location, frame *symbolize.Frame) (c compiled, err error) {
	if f.o.Symbolizer == nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(f.ctx, f.o.Patience)
	defer cancel()
	c.text, c.md5, c.hasMD5, err = access.Symbolizer(f.o.Symbolizer).(sources).Source(ctx, l, frame.File)
	return c, err
}

func (f *Finder) local(path string, known *compiled) (*text, error) {
	if len(f.o.Roots) == 0 {
		return nil, errNoRoot
	}
	data, found, err := f.o.Roots.read(path)
	if errors.Is(err, ErrOutside) {
		return nil, fmt.Errorf("%s: outside of %s", path, f.o.Roots)
	}
	if err != nil {
		return nil, err
	}
	return checked(data, found, known)
}

// checked returns data as a text, or an error if data does not have the checksum in debug
// information.
func checked(data []byte, origin string, known *compiled) (*text, error) {
	if known.hasMD5 && md5.Sum(data) != known.md5 {
		return nil, &changedError{origin}
	}
	t := newText(data)
	t.origin, t.verified = origin, known.hasMD5
	return t, nil
}

type changedError struct{ origin string }

func (e *changedError) Error() string { return e.origin + ": " + errChanged.Error() }

// changed calls notice if err is or wraps a changedError: a file was not used, since its checksum
// differs.
func (f *Finder) changed(e *entry, err error) {
	if c, ok := errors.AsType[*changedError](err); ok {
		f.notice(e, "changed", c.origin+": no lines are shown: "+errChanged.Error())
	}
}

func (f *Finder) beyond(e *entry, t *text, frame *symbolize.Frame) {
	e.found.Lock()
	defer e.found.Unlock()
	if !e.beyond {
		e.beyond, e.told = true, false
		f.notice(e, "changed", fmt.Sprintf("%s: no lines are shown: the file has %d lines and lacks line %d, so it is not the version that was compiled",
			t.origin, t.lines, frame.Line))
	}
}

// notice calls Options.Notify, once for each file and at most maxNotices times for each kind.
// e.found is held.
func (f *Finder) notice(e *entry, kind, message string) {
	if f.o.Notify == nil || e.told {
		return
	}
	e.told = true
	f.mu.Lock()
	f.notices[kind]++
	n := f.notices[kind]
	f.mu.Unlock()
	switch {
	case n <= maxNotices:
		f.o.Notify(string(escape.AppendText(nil, message, "")))
	case n == maxNotices+1:
		f.o.Notify("further source files with this problem are not reported")
	}
}

func (e *entry) say(file, what string) {
	e.said = append(e.said, string(escape.AppendText(nil, file+": "+what, "")))
}

func (f *Finder) explain(said []string) {
	if f.o.Explain != nil {
		for _, s := range said {
			f.o.Explain(s)
		}
	}
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
