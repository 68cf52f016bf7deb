package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

var lastWords = time.Second // time after Ctrl-C for the producer of the log to finish

const (
	patience = time.Second // time for output that blocks after reading has ended

	lastPatience = 2 * time.Second // time for a checkpoint after patience

	// a second signal within this time is ignored: timeout(1) and shells signal both a process and
	// its group
	echo = 200 * time.Millisecond
)

// A stopper stops the reading after a signal. A hang-up or a termination signal stops it at once,
// and an interrupt after a delay. A second signal, or blocked output, ends the process immediately.
// Some runs outlive a hang-up while their terminal exists: see hangups.
type stopper struct {
	reading chan struct{} // closed when reading must stop
	got     atomic.Int32  // first signal
	signals chan os.Signal
	ending  chan struct{} // closed when the work is done
	ended   chan struct{} // closed when listen has returned

	words    time.Duration // time of the log's producer after an interrupt
	patience time.Duration
	last     atomic.Value // func(), called before the process is ended immediately

	hangups *hangups // nil: a hang-up ends the run
}

// newStopper starts a goroutine that listens for signals until the method end is called. cancel
// ends the wait for debug files. After an interrupt, reading continues for the time words, so that
// the log's producer can finish. Then the rest must be printed within the time patience, or the
// process is ended. hangups is nil if a hang-up ends the run. Signals that nohup or a shell has set
// to be ignored stay ignored.
func newStopper(cancel context.CancelFunc, words, patience time.Duration, hangups *hangups) *stopper {
	s := &stopper{
		words:    words,
		patience: patience,
		hangups:  hangups,

		reading: make(chan struct{}),
		signals: make(chan os.Signal, 4),
		ending:  make(chan struct{}),
		ended:   make(chan struct{}),
	}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(s.signals, sig)
		}
	}
	go s.listen(cancel)
	return s
}

func (s *stopper) listen(cancel context.CancelFunc) {
	defer close(s.ended)
	var stop, kill, gone <-chan time.Time
	var first time.Time
	for {
		var sig os.Signal
		select {
		case <-s.ending:
			select {
			case sig := <-s.signals:
				if sig != syscall.SIGHUP || s.hangups == nil {
					s.got.CompareAndSwap(0, number(sig))
				}
			default:
			}
			return
		case sig = <-s.signals:
			if sig == syscall.SIGHUP && s.hangups.survived() {
				gone = time.After(lastTerminal)
				continue
			}
		case <-gone:
			// another signal has ended the run already, or the terminal still exists
			if s.signal() != 0 || !s.hangups.isOrphan() {
				continue
			}
			sig = syscall.SIGHUP
		case <-stop:
			close(s.reading)
			continue
		case <-kill:
			s.exit()
		}
		if !s.got.CompareAndSwap(0, number(sig)) {
			if time.Since(first) < echo {
				continue
			}
			s.exit()
		}
		first = time.Now()
		cancel() // ends the wait for debug files
		delay := time.Duration(0)
		if sig == os.Interrupt {
			delay = s.words
		}
		stop, kill = time.After(delay), time.After(delay+s.patience)
	}
}

func (s *stopper) exit() {
	if last, ok := s.last.Load().(func()); ok {
		done := make(chan struct{})
		go func() { last(); close(done) }()
		select {
		case <-done:
		case <-time.After(lastPatience):
		}
	}
	os.Exit(exitSignal + s.signal())
}

func number(sig os.Signal) int32 {
	n, _ := sig.(syscall.Signal)
	return int32(n)
}

// signal returns the number of the first signal, or 0.
func (s *stopper) signal() int { return int(s.got.Load()) }

// end stops listening, and returns the number of the first signal, or 0. A later signal ends the
// process.
func (s *stopper) end() int {
	signal.Stop(s.signals) // earlier signals are now in the channel
	close(s.ending)
	<-s.ended
	return s.signal()
}
