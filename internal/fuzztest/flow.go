package fuzztest

import (
	"io"
	"testing"
)

// Flow reports an error if a stream does not continue. It writes input to w, and ends the last
// line. Then it writes probe, at least once, until the output grows. It reports an error if the
// output has not grown after probes of within bytes in all. written returns the number of bytes of
// output so far. If w returns an error, Flow reports nothing.
func Flow(t testing.TB, input []byte, w io.Writer, written func() int, probe string, within int) {
	t.Helper()
	if _, err := w.Write(input); err != nil {
		return
	}
	if n := len(input); n > 0 && input[n-1] != '\n' {
		if _, err := w.Write([]byte{'\n'}); err != nil {
			return
		}
	}
	before := written()
	for fed := 0; fed == 0 || fed < within; fed += len(probe) {
		if _, err := io.WriteString(w, probe); err != nil || written() > before {
			return
		}
	}
	t.Errorf("the stream wrote %d bytes, but nothing for the probe %q, repeated to %d bytes, after an input of %d bytes: %.500q", before, probe, max(within, len(probe)), len(input), input)
}
