package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/symfilter/symfilter/internal/wording"
)

// diagnosticsASecond bounds the lines that a broken or hostile log can cause on standard error.
const diagnosticsASecond = 10

// diagnostics prints single lines, at most diagnosticsASecond of each kind in a second unless
// verbose is set. Its methods are safe for concurrent use.
type diagnostics struct {
	w              io.Writer
	quiet, verbose bool

	mu         sync.Mutex
	second     time.Time // start of the second in which lines are counted
	lines      int       // lines about places in the inputs, printed in that second
	sums       int       // lines about whole inputs, printed in that second
	suppressed int64     // suppressed since the last printed line
}

// printf prints a diagnostic line about a place in an input, or counts it as suppressed.
func (d *diagnostics) printf(format string, args ...any) { d.limited(&d.lines, format, args...) }

// sum prints a diagnostic line about a whole input, or counts it as suppressed. It has its own
// limit, so that lines about places do not suppress it.
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

// line prints a line that the user asked for, without a limit.
func (d *diagnostics) line(format string, args ...any) {
	fmt.Fprintf(d.w, "symfilter: %s\n", wording.Line(fmt.Sprintf(format, args...)))
}

// all prints lines that the user asked for.
func (d *diagnostics) all(lines []string) {
	for _, line := range lines {
		d.line("%s", line)
	}
}

// flush prints the number of suppressed lines.
func (d *diagnostics) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tellSuppressed()
}

// tellSuppressed is flush; d.mu is held.
func (d *diagnostics) tellSuppressed() {
	if d.suppressed > 0 {
		d.line("%d more suppressed", d.suppressed)
		d.suppressed = 0
	}
}
