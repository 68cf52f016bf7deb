package daemon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/internal/profile"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	// maxProfile is the maximum size of an unpacked profile, in bytes. A profile of 100,000 stacks
	// takes about 20 MiB.
	maxProfile = 32 << 20
	// packBytes is reserved for the gzip writer of an answer, which takes 1.1 MB (measured). The
	// answer's size does not matter, since it is written in parts.
	packBytes = 1536 << 10
)

// A roomLedger takes the memory of a profile's reader from the [batch.Room] of the request. It
// records whether the Room has refused memory.
type roomLedger struct {
	batch.Room
	refused bool // the room has refused memory
}

func (l *roomLedger) Take(n int64) bool {
	if l.Room.Take(n) {
		return true
	}
	l.refused = true
	return false
}

// Give does nothing: the room is released after the request.
func (l *roomLedger) Give(int64) {}

// A failing is a reader that records the last error of the underlying reader, except io.EOF.
type failing struct {
	io.Reader
	err error // nil after io.EOF
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != io.EOF {
		f.err = err
	}
	return n, err
}

// nameProfile answers a request with its pprof profile, in which locations without a function get
// their functions and lines. It opens no path in the profile, which may come from another machine.
func nameProfile(ctx context.Context, s *batch.Symbols, body io.Reader, h http.Header) (func(io.Writer) error, error) {
	ledger, from := &roomLedger{Room: s.Room}, &failing{Reader: body}
	var named, unnamed int64
	o := profile.Options{PprofOnly: true, Options: report.Options{
		Symbolizer: s.Symbolizer, NoPaths: true, Context: ctx,
		Memory: report.NewBudget(profile.MemoryShare*maxProfile, ledger),
		Named:  func(n int64) { named = n },
		Unresolved: func(all []symbolize.Unresolved) {
			for i := range all {
				unnamed += all[i].Frames
			}
		},
	}}
	if until, ok := ctx.Deadline(); ok {
		o.Wait = time.Until(until)
	}
	p, err := profile.Read(from, o)
	switch {
	case err != nil && from.err != nil:
		return nil, from.err // an error of the peer
	case errors.Is(err, context.Canceled): // the peer has gone, or the daemon ends
		return nil, context.Canceled
	case err != nil && ledger.refused, err == nil && !s.Room.Take(packBytes):
		return nil, batch.ErrNoRoom
	case err != nil:
		return nil, profileError(err)
	}
	h.Set("Content-Type", "application/octet-stream")
	h.Set(resolvedHeader, strconv.FormatInt(named, 10))
	h.Set(unresolvedHeader, strconv.FormatInt(unnamed, 10))
	return func(w io.Writer) error {
		defer p.Close()
		return p.Write(w, profile.Pprof, profile.View{})
	}, nil
}

// profileError returns the error of the service for an error of profile.Read.
func profileError(err error) error {
	const convert = `; "symfilter profile --output=pprof" converts other profiles`
	switch {
	case errors.Is(err, profile.ErrTooLarge):
		return batch.TooLargef("the profile has more than %d MiB unpacked, or takes more than %d MiB while it is read; split its samples over several requests",
			maxProfile>>20, profile.MemoryShare*maxProfile>>20)
	case errors.Is(err, profile.ErrNotPprof):
		return batch.Invalidf("the body is %v; send a pprof profile, plain or compressed by gzip%s", err, convert)
	case errors.Is(err, profile.ErrUnknown):
		return batch.Invalidf("the body is not a pprof profile; send protocol buffers of pprof's profile.proto, plain or compressed by gzip%s", convert)
	case errors.Is(err, profile.ErrCut):
		return batch.Invalidf("%v; send the whole profile again", err)
	}
	return batch.Invalidf("%v; send a valid pprof profile", err)
}
