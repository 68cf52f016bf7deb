//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"

	"github.com/symfilter/symfilter/internal/written"
)

// Descriptors that containerd gives to a logging binary: two streams of the container, and a pipe
// that the binary closes when it is ready.
const (
	containerOut   = 3
	containerErr   = 4
	containerReady = 5
)

// containerStreams returns the descriptors that containerd has opened. No other program may inherit
// them: the container starts only when all copies of ready are closed.
func containerStreams() (streams []*os.File, ready *os.File, err error) {
	for _, of := range []struct {
		fd   uintptr
		name string
	}{{containerOut, "stdout"}, {containerErr, "stderr"}, {containerReady, "ready"}} {
		syscall.CloseOnExec(int(of.fd))
		f := os.NewFile(of.fd, of.name)
		if f == nil || !written.IsPipe(f) {
			return nil, nil, fmt.Errorf("container-log: descriptor %d is not a pipe: only containerd starts this command, by the URI binary:///usr/bin/symfilter?container-log=&--path=FILE", of.fd)
		}
		streams = append(streams, f)
	}
	return streams[:2], streams[2], nil
}
