package main

import (
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/internal/written"
)

// lastTerminal is how long after a hang-up the terminal may still disappear. A shell may signal its
// jobs before it ends and closes the terminal.
const lastTerminal = time.Second

// A hangups decides whether a hang-up signal ends a run that follows files or reads from a pipe.
// Log collectors and logrotate send the signal to make programs reopen their files. So the signal
// ends the run only if the run has lost its terminal, and the user can no longer end it there. A
// run that was started without a terminal outlives each hang-up.
//
// A nil hangups means that each hang-up ends the run.
type hangups struct {
	started bool        // there was a terminal at the start
	exists  func() bool // reports whether there is a terminal now
	// holds an element after a hang-up that the run outlives, until onHangup's goroutine receives
	// it
	again chan struct{}
}

// hangups returns the hangups of a run that follows files or reads from a pipe. It returns nil for
// other runs, which every hang-up ends.
func (c *config) hangups(files []string, in *os.File) *hangups {
	if !c.follow.on && !((len(files) == 0 || slices.Contains(files, "-")) && written.IsPipe(in)) {
		return nil
	}
	return &hangups{started: hasTerminal(), exists: hasTerminal, again: make(chan struct{}, 1)}
}

// hasTerminal reports whether the process has a controlling terminal. A closed terminal controls no
// process.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// isOrphan reports whether the terminal in which the run was started is gone.
func (h *hangups) isOrphan() bool { return h.started && !h.exists() }

// survived reports whether the run outlives the hang-up that has just arrived. If so, it makes the
// goroutine of onHangup call do.
func (h *hangups) survived() bool {
	if h == nil || h.isOrphan() {
		return false
	}
	select {
	case h.again <- struct{}{}:
	default: // a call is already due
	}
	return true
}

// onHangup starts a goroutine that calls the function do after each hang-up that the run outlives,
// including a hang-up before the call of onHangup. Several hang-ups may cause a single call of do.
// The goroutine ends when the channel done is closed. A nil hangups never calls do.
func (h *hangups) onHangup(do func(), done <-chan struct{}) {
	if h == nil {
		return
	}
	go func() {
		for {
			select {
			case <-h.again:
				do()
			case <-done:
				return
			}
		}
	}()
}
