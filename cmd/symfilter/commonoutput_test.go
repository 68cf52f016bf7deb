package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A disk accepts room bytes, and then fails with err.
type disk struct {
	mu sync.Mutex
	bytes.Buffer
	room int
	err  error
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(p), d.room)
	d.Buffer.Write(p[:n])
	if d.room -= n; n < len(p) {
		return n, &os.PathError{Op: "write", Path: "/dev/stdout", Err: d.err}
	}
	return n, nil
}

// A full disk must be reported once, and writes repeated until each byte is written once. Other
// errors must be returned at once.
func TestFullDisksAreWaitedFor(t *testing.T) {
	const text = "one\ntwo\nthree\n"
	for name, test := range map[string]struct {
		err    error
		spaces []int // bytes that become free, each a minute after the previous ones
		stop   bool
		want   string // expected output
		after  time.Duration
		told   string
		fails  bool
	}{
		"space at once":       {err: syscall.ENOSPC, spaces: []int{100}, want: text, after: time.Minute + fullMost, told: "write standard output: no space left on device; retrying until there is space\nstandard output has space again\n"},
		"space in parts":      {err: syscall.EDQUOT, spaces: []int{1, 4, 100}, want: text, after: 3*time.Minute + fullMost, told: "write standard output: disk quota exceeded; retrying until there is space\nstandard output has space again\n"},
		"a signal":            {err: syscall.ENOSPC, stop: true, want: "one\nt", after: time.Minute, told: "write standard output: no space left on device; retrying until there is space\n", fails: true},
		"an error that stays": {err: syscall.EIO, want: "one\nt", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{room: 5, err: test.err}
				stop := make(chan struct{})
				var told strings.Builder
				o := &commonOutput{w: d, stop: stop, tell: func(format string, args ...any) { fmt.Fprintf(&told, format+"\n", args...) }}
				w := o.of("log", &config{})
				begin := time.Now()
				done := make(chan error, 1)
				go func() { _, err := io.WriteString(w, text); done <- err }()
				for _, n := range test.spaces {
					time.Sleep(time.Minute)
					d.mu.Lock()
					d.room += n
					d.mu.Unlock()
				}
				if test.stop {
					time.Sleep(time.Minute)
					close(stop)
				}
				if err := <-done; test.fails != (err != nil) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(begin); took > test.after {
					t.Errorf("took %v, want at most %v", took, test.after)
				}
				if d.String() != test.want || told.String() != test.told {
					t.Errorf("got %q, told %q; want %q, %q", d.String(), told.String(), test.want, test.told)
				}
				if o.written.Load() != int64(len(test.want)) || !test.fails && w.end != int64(len(test.want)) {
					t.Errorf("%d bytes written, up to %d; want %d", o.written.Load(), w.end, len(test.want))
				}
			})
		})
	}
}
