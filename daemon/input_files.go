package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/symfilter/symfilter/follow"
)

// files follows log files.
type files struct {
	p *pipeline
	c Input
}

// openFiles checks what can be checked before the files are followed.
func openFiles(p *pipeline, c Input) (runner, error) {
	for _, name := range c.Files {
		if _, err := filepath.Match(name, ""); err != nil {
			return nil, errors.New("files: " + name + " is not a pattern: " + err.Error())
		}
	}
	return &files{p, c}, nil
}

func (f *files) run(ctx context.Context) error {
	o := follow.Options{
		Names:      f.c.Files,
		Open:       f.open,
		Start:      follow.Start(f.c.StartAt),
		Poll:       f.c.Poll,
		RotateWait: time.Duration(f.c.RotateWait),
		Notify:     f.tell,
	}
	if f.p.state != "" {
		if err := os.MkdirAll(filepath.Dir(f.p.state), 0o700); err != nil {
			return err
		}
		o.State = f.p.state + ".files"
	}
	follower, err := follow.New(o)
	if err != nil {
		return err
	}
	f.p.house.measures.follows(f.p, follower)
	defer f.p.house.measures.unfollows(follower)
	err = follower.Run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (*files) close() error { return nil }

// open returns the sink for the lines of a file.
func (f *files) open(name string) (*follow.Sink, error) {
	s := f.p.session(filepath.Base(name), nil)
	return &follow.Sink{
		WriteCloser: s,
		Written:     s.offset,
		Quiet:       s.beQuiet,
		Context:     s.context,
		Restore:     s.restore,
		Suspend: func() error {
			_, err := s.suspend()
			return err
		},
	}, nil
}

// tell logs an event of the files.
func (f *files) tell(e follow.Event) {
	f.p.counts.inLost.Add(e.Lost)
	switch {
	case e.Lost > 0:
		f.p.log.Warn(e.Message, "file", e.Name, "lost", e.Lost)
	case e.Routine:
		f.p.log.Debug(e.Message, "file", e.Name)
	default:
		f.p.log.Info(e.Message, "file", e.Name)
	}
}
