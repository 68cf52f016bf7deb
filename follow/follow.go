// Package follow reads log files while they are written: each is one stream of
// whole lines across append, truncation and rotation, with a checkpoint from
// which another run goes on.
//
// A file is followed by its name. What stands behind the name is decided by
// what stat says, never by events, which only make it look sooner: one that is
// lost costs time and no line. Of a file that was renamed or removed, what is
// left is read before the one that took its place; generations that came and
// went between two looks are found beside it, under the names that rotation
// gives.
//
// The package knows nothing of what lines hold. It gives them to a [Sink], which
// prints them, and asks it for what another run has to know to go on behind
// them.
package follow

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Limits and intervals, one a line, with unit and reason.
const (
	readSize     = 256 << 10              // bytes a turn: the next file waits no longer than they take
	takenSize    = 128 << 10              // bytes a turn if the reader of the output is asked what it has taken: so many come twice when it dies; more than rereadSize
	workers      = 16                     // files whose lines are printed at once: one that waits for something must not hold up the others
	headSize     = 256                    // bytes at the beginning of a file that say which it is
	recentSize   = 64                     // bytes before the place of reading that are compared at each read: a file truncated and written anew has others
	keepSize     = 4 << 10                // bytes of an unfinished line that are kept, in case that the file is truncated
	rereadSize   = 64 << 10               // bytes of an unfinished line that are read again with what comes; of a longer one only what comes is searched for its end
	lookBack     = 256 << 20              // bytes before the start that are read for their context and not printed
	pollInterval = 250 * time.Millisecond // between looks where no events come
	safetyPolls  = 8                      // every so many of them all files are looked at, events or not
	pace         = 2 * time.Millisecond   // between two rounds of looks that events ask for: a writer of many short lines must not cost a look for each
	settle       = 2                      // poll intervals without growth after which a rotated file is left although its successor is empty, or its last line has no end
	linger       = 5 * time.Second        // without growth, that a rotated file is still read: other processes may not have noticed
	maxKnown     = 8                      // generations of a file, already read, that a checkpoint lists
	maxTries     = 20                     // looks at a folder whose files are being renamed just now
)

// Start says where reading begins in files that are there already, and that no
// checkpoint knows. A positive Start is a duration: files that were written to
// that recently are read from their beginning, rotated ones too, others from
// their end.
type Start time.Duration

// The beginning, and the end. What stands before the end is read for its
// context, as far as it is near, and not printed.
const (
	Beginning Start = 0
	End       Start = -1
)

// ParseStart reads beginning, end or a duration.
func ParseStart(s string) (Start, error) {
	switch s {
	case "beginning":
		return Beginning, nil
	case "end":
		return End, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("not beginning, end, or a duration: write 30m or 24h")
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

// Options say what a Follower follows, and how.
type Options struct {
	// Names are names of files, or patterns as of [path/filepath.Match]: files
	// that match later are followed too, from their beginning, but for
	// compressed ones. A name that exists is no pattern.
	Names []string

	// Open returns what takes the lines of a file, when it is there for the
	// first time.
	Open func(name string) (*Sink, error)

	// Start is where reading begins.
	Start Start

	// State is the file of the checkpoint; none if it is empty.
	State string

	// Poll says not to use the system's events on files.
	Poll bool

	// Interval is the time between two looks at a file where no events come;
	// 0: 250 ms.
	Interval time.Duration

	// RotateWait is how long a file that was renamed is kept open after it grew last, in case that
	// something is written to it late; 0: until it is removed. At most 8 of one name are kept open.
	RotateWait time.Duration

	// Workers is how many sinks may be at work at once, 0: 16.
	Workers int

	// Skip reports whether a file must not be followed, as the standard output
	// of this very process. Nil: none.
	Skip func(os.FileInfo) bool

	// Taken returns how many bytes of the output its reader has taken, as
	// [Sink.Written] counts them. Lines that were not taken do not count as
	// printed in a checkpoint: if the reader dies, the next run prints them
	// again. Nil: what was written is taken.
	Taken func() int64

	// Sync is called before what was written by then is made to count after a
	// power cut too, and makes it last. Nil: nothing is to be done.
	Sync func() error

	// Tell is called for what a user may want to know, from several goroutines.
	// Nil: nobody does.
	Tell func(Event)
}

// A Sink takes the lines of one file. One goroutine at a time uses it, not
// always the same.
//
// What is written are whole lines: each Write ends with a line end, but for a
// line of more than 256 KiB, whose parts come one after the other, and for a
// last line without an end, when Run ends. When Write returns, all has gone
// where a reader finds it, or is part of what Context says. An error of Write
// or Close ends Run.
//
// All functions may be nil.
type Sink struct {
	io.WriteCloser

	// Written returns the place in the output after the last byte that this
	// Sink has written, for [Options.Taken]. Nil: 0.
	Written func() int64

	// Rotated is called when the lines of another file follow, or those of the
	// same after it was truncated. It returns the Sink for them; nil: this one.
	// Processes that have not noticed yet may go on writing to the old file:
	// what they write goes to the old Sink, which is closed some seconds later.
	Rotated func() (*Sink, error)

	// Quiet says whether what is written from now on is to be read for its
	// context only, and not printed. Nil: such lines are not written.
	Quiet func(on bool)

	// Context appends what another Sink has to know to go on behind what was
	// written so far. It reports false if that cannot be said: then all of the
	// file will be read again, quietly, as far as it was written. Nil: nothing
	// is to be known.
	Context func(dst []byte) (context []byte, ok bool)

	// Changed reports, once, that what Context appends has changed although nothing was written: the
	// sink has printed what it had kept. It must not wait. Nil: that does not happen.
	Changed func() bool

	// Restore gives a new Sink what Context of another has said. After an error
	// it is as new, and the file is read again.
	Restore func(context []byte) error

	// Suspend is called in the place of Close when another run will go on
	// behind what was written: it prints what is complete. Context is asked
	// for after that. Nil: there is nothing to be printed.
	Suspend func() error
}

// An Event is something that a user may want to know.
type Event struct {
	Name    string // of the file, as it was given; empty: of none
	Message string // one line
	Routine bool   // it is as it should be: a rotation
	Lost    int64  // bytes that were seen in the file, and are lost
}

// A Follower follows files.
type Follower struct {
	o        Options
	patterns []string // absolute
	watcher  *watcher
	files    files
	disk     *disk
	saver    *saver
	open     func() (*fsnotify.Watcher, error) // the system's events; nil: none

	// For the goroutine of Run.
	sources map[string]*source // by absolute path
	queue   []*source          // that wait for a worker
	busy    int                // workers at work
	ran     bool
	began   time.Time // when Run was called
}

// New returns a Follower, which continues where the checkpoint says. The error
// is one of the options, or says that the checkpoint cannot be written, or that
// something else is in its place, which is left as it is. A checkpoint that is
// torn, or of another machine, is reported by Tell and not used.
func New(o Options) (*Follower, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &Follower{o: o, sources: make(map[string]*source)}
	f.files.byID = make(map[fileID]*record)
	f.disk = newDisk(f.tellFull)
	if !o.Poll {
		f.open = fsnotify.NewWatcher
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
			return nil, fmt.Errorf("%s is to be followed: give the checkpoint another name", o.State)
		}
		if f.sources[path] == nil {
			f.sources[path] = &source{f: f, name: name, path: path, start: o.Start}
		}
	}
	var err error
	f.saver, err = newSaver(o.State, f.patterns, o)
	return f, err
}

// check returns what is wrong with the options.
func (o *Options) check() error {
	switch {
	case len(o.Names) == 0:
		return errors.New("no names of files to follow")
	case slices.Contains(o.Names, ""):
		return errors.New("the name of a file to follow is empty")
	case o.Open == nil:
		return errors.New("no Options.Open: nothing takes the lines")
	case o.Interval < 0:
		return fmt.Errorf("an interval of %v is less than nothing", o.Interval)
	case o.Workers < 0:
		return fmt.Errorf("%d workers are less than none", o.Workers)
	}
	return nil
}

func (f *Follower) tell(e Event) {
	if f.o.Tell != nil {
		f.o.Tell(e)
	}
}

// interval returns the time between two looks where no events come.
func (f *Follower) interval() time.Duration {
	if f.o.Interval > 0 {
		return f.o.Interval
	}
	return pollInterval
}

// Save writes a checkpoint of what has been printed so far, which survives a
// power cut. It may be called while Run is at work, and does not wait for sinks:
// what one is just writing does not count.
func (f *Follower) Save() error {
	if err := f.saver.save(); err != nil {
		return err
	}
	return f.saver.secure()
}
