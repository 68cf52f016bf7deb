package daemon

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/internal/unpack"
)

// A stalledPeer sends the body of a request one byte at a time, and reads the answer in parts. It
// pauses before each part.
type stalledPeer struct {
	httptest.ResponseRecorder
	pause       time.Duration
	parts       int // bytes of the body
	read, write time.Time
}

func (p *stalledPeer) SetReadDeadline(t time.Time) error  { p.read = t; return nil }
func (p *stalledPeer) SetWriteDeadline(t time.Time) error { p.write = t; return nil }

// stall pauses before the next part, but at most until the deadline.
func (p *stalledPeer) stall(deadline time.Time) error {
	if at := time.Now().Add(p.pause); deadline.IsZero() || at.Before(deadline) {
		time.Sleep(p.pause)
		return nil
	}
	time.Sleep(time.Until(deadline))
	return os.ErrDeadlineExceeded
}

func (p *stalledPeer) Read(b []byte) (int, error) {
	if p.parts == 0 {
		return 0, io.EOF
	}
	p.parts--
	b[0] = ' '
	return 1, p.stall(p.read)
}

func (p *stalledPeer) Write(b []byte) (int, error) {
	if err := p.stall(p.write); err != nil {
		return 0, err
	}
	return p.ResponseRecorder.Write(b)
}

func TestPeersOfTheServiceHaveDeadlines(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pause   time.Duration
		parts   int // bytes of the body
		written int // parts of the answer that were written
		file    bool
		ends    bool          // the answer is complete
		after   time.Duration // duration of the request
	}{
		{"slow", time.Second, 20, 2, false, true, 22 * time.Second},
		{"no body", time.Hour, 1, 1, false, false, 30 * time.Second},
		{"a body by the byte", 10 * time.Second, 100, 1, false, false, 30 * time.Second},
		{"an answer by the byte", 10 * time.Second, 1, 100, false, false, 70 * time.Second},
		{"a file by the part", 20 * time.Second, 0, 100, true, true, 2000 * time.Second},
		{"a file that is not read", time.Hour, 0, 100, true, false, 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &stalledPeer{ResponseRecorder: *httptest.NewRecorder(), pause: tt.pause, parts: tt.parts}
				write := func(w io.Writer) error {
					for range tt.written {
						if _, err := w.Write([]byte("part")); err != nil {
							return err
						}
					}
					return nil
				}
				begin, ends := time.Now(), false
				if tt.file {
					ends = write(&stalling{p, http.NewResponseController(p), context.Background()}) == nil
				} else {
					ends = answered(p, write)
				}
				if took := time.Since(begin); took != tt.after || ends != tt.ends {
					t.Errorf("the request ended after %v, complete: %v; want %v, %v", took, ends, tt.after, tt.ends)
				}
			})
		})
	}
}

// answered sends the request of p to the service, which writes its answer with write. It reports
// whether the answer was complete.
func answered(p *stalledPeer, write func(io.Writer) error) (ends bool) {
	a := &api{house: &house{unpacking: unpack.NewMemory(1)}, conf: Service{Wait: Duration(time.Hour)}, symbols: &symbols{Opened: new(symfilter.Opened)}}
	a.house.ledger = &ledger{contexts: &contexts{house: a.house}}
	a.house.limits.Store(&Limits{})
	a.ctx, a.end = context.WithCancel(context.Background())
	defer a.end()
	defer func() {
		switch e := recover(); e {
		case nil:
		case http.ErrAbortHandler:
			ends = false // the connection is closed: the answer is incomplete
		default:
			panic(e)
		}
	}()
	a.answer(p, httptest.NewRequest("POST", "/", p), jsonProtocol(func(_ context.Context, _ *batch.Symbols, body io.Reader) (func(io.Writer) error, error) {
		_, err := io.ReadAll(body)
		ends = err == nil
		return write, err
	}))
	return ends
}
