// Package follow reads log files while they are written. It turns each file into one stream of
// whole lines, across truncation and rotation. Another run can continue at a checkpoint.
//
// A file is followed by its name. The current file of a name is found by stat. Events only trigger
// a check: a lost event costs time, but no line. The rest of a renamed or removed file is read
// before the file that took its place. A file that had the name only between two checks is found in
// the same folder, under the names that rotation gives.
//
// The package does not interpret lines. A [Sink] prints them, and returns the context that another
// run needs to continue after them.
package follow

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/symfilter/symfilter/internal/lineage"
)

// Limits and intervals.
const (
	readSize = 256 << 10 // bytes that a turn reads, before the next file has its turn
	// bytes that a turn reads if Options.Taken is set: they may be printed twice if the reader of
	// the output dies; larger than rereadSize
	takenSize = 128 << 10
	// files whose lines are printed at the same time: a waiting file must not block the others
	workers  = 16
	keepSize = 4 << 10 // bytes of an unfinished line kept in memory, in case the file is truncated
	// bytes of an unfinished line that are reread with new bytes; in a longer line, only new bytes
	// are searched for the line end
	rereadSize = 64 << 10
	// bytes before the start that are read for their context, and not printed
	lookBack     = 256 << 20
	pollInterval = 250 * time.Millisecond // between two checks if no events arrive
	// poll intervals between two checks of all files, even if events arrive
	safetyPolls = 8
	// pause between rounds of checks after events: many short lines must not cost a check each
	pace = 2 * time.Millisecond
	// poll intervals without growth after which the next file is read, even if the rotated file's
	// last line is unfinished
	settle = 2
	// time without growth during which a rotated file is still read: its writer may not have
	// noticed the rotation
	linger   = 5 * time.Second
	maxTries = 20 // attempts to list a folder whose files are being renamed
)

// Start is the place at which reading begins in existing files without a checkpoint. A positive
// Start is a duration. Files written within this duration before the start are read from their
// beginning, even rotated files. An older file is read from its end, and older rotated files are
// not read.
type Start time.Duration

// With End, earlier lines are read for their context, and not printed: the last 256 MiB, or all
// lines if the Sink needs them.
const (
	Beginning Start = 0
	End       Start = -1
)

// ParseStart parses "beginning", "end" or a positive duration such as 30m.
func ParseStart(s string) (Start, error) {
	switch s {
	case "beginning":
		return Beginning, nil
	case "end":
		return End, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("not beginning, end or a positive duration such as 30m")
	}
	return Start(d), nil
}

func (s Start) String() string {
	switch {
	case s == Beginning:
		return "beginning"
	case s < 0:
		return "end"
	}
	return time.Duration(s).String()
}

// Options configure a Follower.
type Options struct {
	// Names are names of files, or patterns of [path/filepath.Match]. Files that match later are
	// followed from their beginning. Compressed and temporary files never match. The name of an
	// existing file is not a pattern.
	Names []string

	// Exclude are patterns of [path/filepath.Match] for files that are not followed. A pattern
	// without a separator is matched with the last part of a path. Any other pattern is matched
	// with the whole path and each of its folders.
	Exclude []string

	// Open returns the sink for a file's lines, once the file exists.
	Open func(name string) (*Sink, error)

	// Unpack returns a reader of the contents of a file compressed with gzip, zstd, xz or bzip2.
	// done frees the reader's memory, which should be bounded. Unpack must be safe for concurrent
	// use. If Unpack is nil, the unread lines of a rotated file are lost when it is compressed, and
	// the loss is reported.
	Unpack func(packed io.Reader) (contents io.Reader, done func(), err error)

	// Start is the place at which reading begins in files without a checkpoint.
	Start Start

	// State is the path of the checkpoint file. If it is empty, there is no checkpoint.
	State string

	// Poll turns off the system's events on files.
	Poll bool

	// Interval is the time between two checks of a file without events. 0 selects 250 ms.
	Interval time.Duration

	// RotateWait is how long a renamed file is kept open for late lines after its last growth. 0
	// keeps it open until it is removed. At most 8 files of one name are kept open. A file with a
	// replaced Sink is closed after 5 s without growth: see [Sink.Rotated].
	RotateWait time.Duration

	// Workers is the number of sinks that may run at the same time. 0 selects 16.
	Workers int

	// Skip reports whether a file must not be followed, such as this process's own standard output.
	// If it is nil, no file is skipped.
	Skip func(os.FileInfo) bool

	// Taken returns the number of output bytes that the reader has taken, counted like
	// [Sink.Written]. A checkpoint leaves out lines that the reader has not taken: if the reader
	// dies, the next run prints them again. If Taken is nil, all written bytes count as taken.
	Taken func() int64

	// Sync makes the output written so far survive a power cut. It is called before a checkpoint is
	// marked as synced. If it is nil, the output needs no sync.
	Sync func() error

	// Last is called at the end of Run. It returns true if no other run continues at the
	// checkpoint. Unfinished lines are then printed, and the sinks closed. If Last is nil, another
	// run may continue.
	Last func() bool

	// Notify is called with messages for the user. It must be safe for concurrent use. If it is
	// nil, messages are dropped.
	Notify func(Event)
}

// A Sink takes the lines of one file. Only one goroutine at a time uses it, but the goroutine may
// change.
//
// Each Write gets whole lines, with three exceptions. A line of more than 256 KiB, or 128 KiB with
// [Options.Taken], is passed in consecutive parts. At the end of Run, the last line may have no
// line end. If the followed file has the name of a compressed file, parts may have any size. When
// Write returns, the bytes must be in the output or in the result of Context. An error of Write or
// Close ends Run.
//
// All functions may be nil.
type Sink struct {
	io.WriteCloser

	// Written returns the offset in the output after the last byte of this Sink, for
	// [Options.Taken]. If Written is nil, the offset is 0.
	Written func() int64

	// Rotated is called before the lines of another file, or of the same file after a truncation.
	// It returns the Sink for these lines, or nil to continue with this Sink. A process that has
	// not noticed the rotation may still write to the old file. Its lines go to the old Sink, which
	// is closed some seconds later.
	Rotated func() (*Sink, error)

	// Quiet is called with true before lines that are read only for their context, and with false
	// before the next line to print. If Quiet is nil, quiet lines are not written to the Sink.
	Quiet func(on bool)

	// Context appends the state that another Sink needs to continue after the lines written so far.
	// If ok is false, the next run rereads all earlier lines: quietly, unless Written reports that
	// none of them was printed. If Context is nil, a Sink needs no context.
	Context func(dst []byte) (context []byte, ok bool)

	// Changed reports whether the result of Context has changed without a Write, since the sink has
	// printed held lines. It returns true once for such a change. Changed must not block. If
	// Changed is nil, there are no such changes.
	Changed func() bool

	// Restore gives a new Sink the result of another Sink's Context. After an error, the Sink must
	// be in its initial state, and the file is read again.
	Restore func(context []byte) error

	// Suspend is called instead of Close if another run continues after the written lines. Suspend
	// prints all complete records; then Context is called. The sinks of rotated files are closed
	// instead. If Suspend is nil, the Sink holds nothing back.
	Suspend func() error
}

// An Event is a message for the user.
type Event struct {
	// name in Options.Names, or matched path; empty: the event is not about a file
	Name    string
	Message string // one line
	Routine bool   // an expected event, such as a rotation
	Again   bool   // a part of the checkpoint is not used: lines may be printed again
	Loss    bool   // lines were lost
	Lost    int64  // bytes that were in the file at a check, but can no longer be read; 0: unknown
}

// A Follower follows files. Run may be called once.
type Follower struct {
	o        Options
	patterns []string // absolute
	excluded exclusions
	watcher  *watcher
	records  *lineage.Records
	disk     *disk
	saver    *saver
	open     func() (*fsnotify.Watcher, error) // opens the system's events; nil: not used
	looks    chan struct{}                     // has an element if all files are to be examined
	totals   totals

	mu sync.Mutex // guards writes to sources, and reads outside Run's goroutine

	// only the goroutine of Run uses the fields below
	sources map[string]*source // by absolute path
	queue   []*source          // waiting for a worker
	busy    int                // sources that workers are processing
	ran     bool
	began   time.Time // when Run was called
}

// New returns a Follower that continues at the checkpoint in Options.State. It fails if the Options
// are invalid, if the checkpoint cannot be written, or if another process uses it. It also fails if
// another file is at the checkpoint's path, and does not change that file: see [IsForeign]. A
// checkpoint from another machine, or without a valid record, is not used. A torn checkpoint is
// used up to the tear. Notify gets a message in both cases.
func New(o Options) (*Follower, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &Follower{o: o, sources: make(map[string]*source), looks: make(chan struct{}, 1)}
	f.records = lineage.NewRecords()
	f.disk = newDisk(f.notifyFull)
	f.disk.unpack = o.Unpack
	if !o.Poll {
		f.open = fsnotify.NewWatcher
	}
	var err error
	if f.excluded, err = newExclusions(o.Exclude); err != nil {
		return nil, err
	}
	for _, name := range o.Names {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		if _, err := os.Lstat(path); err != nil && hasMeta(name) {
			if _, err := filepath.Match(path, ""); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			f.patterns = append(f.patterns, path)
			continue
		}
		if o.State != "" && resolved(path) == resolved(o.State) {
			return nil, fmt.Errorf("%s is a followed file: name another file for the checkpoint", o.State)
		}
		if f.sources[path] == nil && !f.excluded.match(path) {
			f.sources[path] = f.newSource(name, path)
			f.sources[path].origin.start = o.Start
		}
	}
	if len(f.sources)+len(f.patterns) == 0 {
		return nil, errors.New("all names of files to follow are excluded")
	}
	f.saver, err = newSaver(o.State, f.patterns, o)
	return f, err
}

func (o *Options) check() error {
	switch {
	case len(o.Names) == 0:
		return errors.New("no names of files to follow")
	case slices.Contains(o.Names, ""):
		return errors.New("the name of a file to follow is empty")
	case o.Open == nil:
		return errors.New("Options.Open is nil: no sink gets the lines")
	case o.Interval < 0:
		return fmt.Errorf("the interval %v is negative", o.Interval)
	case o.RotateWait < 0:
		return fmt.Errorf("the wait of %v for late lines is negative", o.RotateWait)
	case o.Workers < 0:
		return fmt.Errorf("%d workers: the number is negative", o.Workers)
	}
	return nil
}

func (f *Follower) notify(e Event) {
	if f.o.Notify != nil {
		f.o.Notify(e)
	}
}

// interval returns the time between two checks without events.
func (f *Follower) interval() time.Duration {
	if f.o.Interval > 0 {
		return max(f.o.Interval, hurryShare) // a ticker needs at least a nanosecond
	}
	return pollInterval
}

// Save writes a checkpoint of the lines printed so far, which survives a power cut. Any goroutine
// may call Save during Run. It does not wait for sinks, and leaves out lines that a sink is
// writing.
func (f *Follower) Save() error {
	if err := f.saver.save(); err != nil {
		return err
	}
	return f.saver.secure()
}

// Look requests a check of all names and patterns, as if events had arrived for them. Any goroutine
// may call Look at any time. It does not wait.
func (f *Follower) Look() {
	select {
	case f.looks <- struct{}{}:
	default: // a look that has not begun yet suffices
	}
}
