package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	lastWords = time.Second // that Ctrl-C leaves the producer of the log for its last words
	patience  = time.Second // for output that blocks when reading has ended
)

// A stopper turns signals into the end of reading. Hang-up and termination
// stop it at once, interrupt after lastWords; a second signal, or output that
// blocks, ends the process on the spot.
type stopper struct {
	reading chan struct{} // closed when nothing more is to be read
	got     atomic.Int32  // the first signal
	signals chan os.Signal
	ended   chan struct{}
}

// newStopper starts to listen for signals, in a goroutine that end ends;
// cancel ends waiting for debug files. Signals that were ignored when the
// program started, by nohup or a shell's background, stay so.
func newStopper(cancel context.CancelFunc) *stopper {
	s := &stopper{
		reading: make(chan struct{}),
		signals: make(chan os.Signal, 4),
		ended:   make(chan struct{}),
	}
	// A write to a closed pipe fails with EPIPE, on standard output too.
	signal.Ignore(syscall.SIGPIPE)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(s.signals, sig)
		}
	}
	go s.listen(cancel)
	return s
}

func (s *stopper) listen(cancel context.CancelFunc) {
	var stop, kill <-chan time.Time
	for {
		select {
		case <-s.ended:
			return
		case sig := <-s.signals:
			n := int32(sig.(syscall.Signal))
			if !s.got.CompareAndSwap(0, n) {
				os.Exit(exitSignal + int(n))
			}
			delay := time.Duration(0)
			if sig == os.Interrupt {
				delay = lastWords
			}
			stop, kill = time.After(delay), time.After(delay+patience)
		case <-stop:
			cancel()
			close(s.reading)
		case <-kill:
			os.Exit(exitSignal + s.signal())
		}
	}
}

// signal returns the number of the signal that came, or 0.
func (s *stopper) signal() int { return int(s.got.Load()) }

// end stops listening: from now on signals end the process.
func (s *stopper) end() {
	signal.Stop(s.signals)
	close(s.ended)
}
