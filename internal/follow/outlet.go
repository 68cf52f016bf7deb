package follow

import (
	"errors"
	"unicode/utf8"
)

// An outlet is a sink with its state: whether its lines are quiet now, and whether it is closed.
type outlet struct {
	*Sink
	quiet  bool
	closed bool
}

var errNoSink = errors.New("Options.Open returned no Sink, or one without a Writer")

// sink opens a sink for the source. The error is a sinkError.
func (s *shared) sink() (*outlet, error) {
	sink, err := s.f.o.Open(s.name)
	if err == nil && (sink == nil || sink.WriteCloser == nil) {
		err = errNoSink
	}
	if err != nil {
		return nil, sinkError{err}
	}
	return &outlet{Sink: sink}, nil
}

// A sinkError is an error of a sink. It ends Run.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

func isSinkError(err error) bool { _, ok := errors.AsType[sinkError](err); return ok }

// write writes p to the sink. It calls Quiet first if quiet has changed. A sink without Quiet gets
// no quiet lines.
func (o *outlet) write(p []byte, quiet bool) error {
	if o.Quiet == nil && quiet || len(p) == 0 {
		return nil
	}
	if o.quiet != quiet {
		o.quiet = quiet
		o.Quiet(quiet)
	}
	if _, err := o.Write(p); err != nil {
		return sinkError{err}
	}
	return nil
}

// written returns the offset in the output at which the sink's output ends. It returns 0 if the
// sink has no Written.
func (o *outlet) written() int64 {
	if o.Written == nil {
		return 0
	}
	return o.Written()
}

// context returns the context that another run needs. If replay is true, there is no context, and
// the lines must be read again.
func (o *outlet) context() (context string, replay bool) {
	if o.Context == nil || o.closed {
		return "", false
	}
	b, ok := o.Context(nil)
	if !ok || !utf8.Valid(b) {
		return "", true
	}
	return string(b), false
}

// silent reports whether the sink has certainly printed nothing.
func (o *outlet) silent() bool { return o.Written != nil && o.Written() == 0 }

func (o *outlet) close() error {
	o.closed = true
	if err := o.Close(); err != nil {
		return sinkError{err}
	}
	return nil
}

// knowsContext reports whether the sink can continue without earlier lines.
func (o *outlet) knowsContext() bool {
	if o.Context == nil {
		return true
	}
	_, ok := o.Context(nil)
	return ok
}
