package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/symfilter/symfilter/internal/wording"
)

// diagnosticsASecond bounds the lines of each kind that a broken or hostile log causes on standard
// error in a second.
const diagnosticsASecond = 10

// A diagnostics prints single lines. Unless verbose is set, it prints at most diagnosticsASecond of
// each kind per second. A diagnostics is safe for concurrent use.
type diagnostics struct {
	w              io.Writer
	quiet, verbose bool

	mu         sync.Mutex
	second     time.Time // start of the second that lines and sums refer to
	lines      int       // printed lines about places in the inputs
	sums       int       // printed lines about whole inputs
	suppressed int64     // since the last printed line
}

// printf prints a line about a place in an input, or suppresses it.
func (d *diagnostics) printf(format string, args ...any) { d.limited(&d.lines, format, args...) }

// sum prints a line about a whole input, or suppresses it. The limit is separate: lines about
// places do not suppress it.
func (d *diagnostics) sum(format string, args ...any) { d.limited(&d.sums, format, args...) }

func (d *diagnostics) limited(printed *int, format string, args ...any) {
	if d.quiet {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.second) >= time.Second {
		d.tellSuppressed()
		d.second, d.lines, d.sums = now, 0, 0
	}
	if *printed >= diagnosticsASecond && !d.verbose {
		d.suppressed++
		return
	}
	*printed++
	d.line(format, args...)
}

// line prints a line at once. The limits of printf and sum do not apply.
func (d *diagnostics) line(format string, args ...any) {
	fmt.Fprintf(d.w, "symfilter: %s\n", wording.Line(fmt.Sprintf(format, args...)))
}

// all prints each of the lines, without a limit.
func (d *diagnostics) all(lines []string) {
	for _, line := range lines {
		d.line("%s", line)
	}
}

func (d *diagnostics) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tellSuppressed()
}

// tellSuppressed prints the number of suppressed lines, if any. d.mu is held.
func (d *diagnostics) tellSuppressed() {
	if d.suppressed > 0 {
		d.line("%d more suppressed", d.suppressed)
		d.suppressed = 0
	}
}
