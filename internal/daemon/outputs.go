package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// A sharedOutput is an output that several stages use: stages of several pipelines, or of one
// pipeline before and after a reload.
type sharedOutput struct {
	output
	all   *outputs
	key   string
	users int // guarded by all.mu
}

// close ends one use of the output. The last close closes the output itself.
func (s *sharedOutput) close() error {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	delete(s.all.byKey, s.key)
	return s.output.close()
}

type outputs struct {
	log    *slog.Logger
	stdout *os.File
	denied func(err error, dir string) error // explains an error in a folder

	mu    sync.Mutex
	byKey map[string]*sharedOutput
}

func newOutputs(log *slog.Logger, stdout *os.File, denied func(error, string) error) *outputs {
	return &outputs{log: log, stdout: stdout, denied: denied, byKey: make(map[string]*sharedOutput)}
}

// open returns the output of c, or an error if it is known to be unwritable. It makes no file and
// no connection. Equal configurations share one output, even across a reload.
func (all *outputs) open(c Output) (output, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	key := fmt.Sprint("file ", c.File, " ", c.Mode, c.OpenFiles, c.Sync)
	switch {
	case c.Stdout != "":
		key = "stdout " + c.Sync
	case c.Connect != "":
		key = "connect " + c.Connect
		if c.TLS != nil {
			key = fmt.Sprintf("%s %+v", key, *c.TLS)
		}
	}
	if s := all.byKey[key]; s != nil {
		s.users++
		return s, nil
	}
	out, err := all.make(c)
	if err != nil {
		return nil, err
	}
	s := &sharedOutput{output: out, all: all, key: key, users: 1}
	all.byKey[key] = s
	return s, nil
}

func (all *outputs) make(c Output) (output, error) {
	switch {
	case c.Stdout != "":
		return newStdoutOutput(all.stdout, c.Sync, all.log.With("output", "stdout")), nil
	case c.File != "":
		o, err := newFileOutput(c, all.log.With("output", filepath.Base(c.File)))
		if err != nil {
			return nil, err
		}
		o.denied = all.denied
		return o, nil
	case c.Connect != "":
		return newConnectOutput(c, all.log.With("output", c.Connect))
	}
	return nil, errors.New("no output is given: set one of stdout, file, peer and connect")
}

// A flow is an output whose reader may vanish before it has read all bytes: a pipe or a connection.
type flow interface {
	// unread returns the number of bytes that the reader has not read, or false if this is unknown.
	unread() (int64, bool)
}

// asFlow returns o as a flow, or nil.
func asFlow(o output) flow {
	if s, ok := o.(*sharedOutput); ok {
		o = s.output
	}
	switch o := o.(type) {
	case *stdoutOutput:
		if o.left == nil {
			return nil
		}
		return o
	}
	f, _ := o.(flow)
	return f
}

// A durable output can sync its lines, which then survive a power failure.
type durable interface{ sync() error }

// asDurable returns o as durable, or nil.
func asDurable(o output) durable {
	if s, ok := o.(*sharedOutput); ok {
		o = s.output
	}
	d, _ := o.(durable)
	return d
}

// ownsFile reports whether the output writes, or has written, to the file of info.
func ownsFile(o output, info os.FileInfo) bool {
	if s, ok := o.(*sharedOutput); ok {
		o = s.output
	}
	w, ok := o.(interface{ owns(os.FileInfo) bool })
	return ok && w.owns(info)
}

// attempts returns the output's failed attempts and current error: see [trouble]. For an output
// without retries, both are zero.
func (s *sharedOutput) attempts() (failed int64, now error) {
	if out, ok := s.output.(attempting); ok {
		return out.attempts()
	}
	return 0, nil
}
