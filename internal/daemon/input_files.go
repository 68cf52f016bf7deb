package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/symfilter/symfilter/internal/follow"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/written"
)

type files struct {
	p *pipeline
	c Input

	unsent int64 // p.unsent at the start of the run
}

func openFiles(p *pipeline, c Input) (runner, error) {
	for _, name := range c.Files {
		if _, err := filepath.Match(name, ""); err != nil {
			return nil, errors.New("files: " + name + " is not a valid pattern: " + err.Error())
		}
	}
	return &files{p: p, c: c}, nil
}

func (f *files) run(ctx context.Context) error {
	o := follow.Options{
		Names:      f.c.Files,
		Exclude:    f.c.ExcludePath,
		Open:       f.open,
		Unpack:     f.unpack,
		Start:      follow.Start(f.c.StartAt),
		Poll:       f.c.Poll,
		RotateWait: time.Duration(f.c.RotateWait),
		Skip:       f.isOutput,
		Last:       f.p.last.Load,
		Notify:     f.notify,
	}
	if f.p.state != "" {
		if err := os.MkdirAll(filepath.Dir(f.p.state), 0o700); err != nil {
			return err
		}
		o.State = f.p.state + ".files"
		o.Sync = f.sync
	}
	if out := asFlow(f.p.stage.Load().out); o.State != "" && out != nil {
		f.unsent = f.p.unsent.Load()
		o.Taken = written.Taken(f.p.counts.outBytes.Load, f.unread)
	}
	follower, err := follow.New(o)
	foreign := follow.IsForeign(err)
	if f.p.setUnsaved(foreign, err); foreign {
		o.State, o.Sync, o.Taken = "", nil, nil
		follower, err = follow.New(o)
	}
	if err != nil {
		return err
	}
	f.p.house.measures.follows(f.p, follower)
	defer f.p.house.measures.unfollows(follower)
	defer f.p.abandon() // a blocked output may leave open sinks
	err = follower.Run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (*files) close() error { return nil }

// unpack unpacks a rotated file that was compressed before it was read to its end.
func (f *files) unpack(packed io.Reader) (io.Reader, func(), error) {
	return input.Unpacked(packed, f.p.house.unpacking)
}

// isOutput reports whether the pipeline's output writes, or has written, to the file of info.
func (f *files) isOutput(info os.FileInfo) bool { return ownsFile(f.p.stage.Load().out, info) }

// unread returns how many bytes the readers of current and replaced outputs have not read. It
// returns false if the number is unknown.
func (f *files) unread() (int64, bool) {
	n, ok := int64(0), true
	if out := asFlow(f.p.stage.Load().out); out != nil { // nil: after a reload the output is a file
		n, ok = out.unread()
	}
	return n + f.p.unsent.Load() - f.unsent, ok
}

func (f *files) sync() error {
	if out := asDurable(f.p.stage.Load().out); out != nil {
		return out.sync()
	}
	return nil
}

// open returns the sink for the lines of a file.
func (f *files) open(name string) (*follow.Sink, error) {
	s := f.p.session(filepath.Base(name), nil)
	s.plain = !follow.IsArchive(name)
	return s.sink(func() (*follow.Sink, error) { return f.open(name) }), nil
}

// notify logs an event, and counts its loss, if any.
func (f *files) notify(e follow.Event) {
	if e.Loss {
		f.p.counts.lose(e.Lost)
	}
	switch {
	case e.Loss && e.Lost > 0:
		f.p.log.Warn(e.Message, "file", e.Name, "lost", e.Lost)
	case e.Loss:
		f.p.log.Warn(e.Message, "file", e.Name)
	case e.Again:
		f.p.log.Warn(e.Message, "file", e.Name)
	case e.Routine:
		f.p.log.Debug(e.Message, "file", e.Name)
	default:
		f.p.log.Info(e.Message, "file", e.Name)
	}
}
