package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// On a terminal, control characters in names must be escaped, and the binary form of pprof must be
// refused.
func TestStacksOnATerminal(t *testing.T) {
	const profile = "# callgrind format\nevents: Ir\nfn=f\x1b[2J\u202e;g\n1 5\n"
	if got, want := onTerminal(t, profile, nil, "--output=folded"), `f\x1b[2J\u202e:g 5`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	cmd := exec.Command(os.Args[0], "--output=pprof")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	shown, err := runOnTerminal(t, cmd, profile, nil)
	if shown != "" || cmd.ProcessState.ExitCode() != exitUsage || !strings.HasPrefix(stderr.String(), "symfilter: --output=pprof is binary, and standard output is a terminal: write --output=pprof:FILE;") {
		t.Errorf("%q, %v, %s", shown, err, stderr.String())
	}
}
