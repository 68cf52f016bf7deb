//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// contender is a command with the costs of its runs.
type contender struct {
	argv []string
	log  string // input of the command; empty for the workload's log
	// measure runs the command and returns its cost; if nil, once is used
	measure func(ctx context.Context, argv []string, log string) (cost, error)
	runs    []cost
}

// contend returns a contender that reads the workload's log, and prints to the null device.
func contend(argv ...string) *contender { return &contender{argv: argv} }

// cost holds the figures of one run, or the median of each figure over several runs.
type cost struct {
	Wall time.Duration `json:"wall_ns"`
	CPU  time.Duration `json:"cpu_ns"`
	Peak int64         `json:"peak_bytes"` // resident
}

// median returns the median of each figure separately.
func median(runs []cost) cost {
	return cost{
		Wall: middle(runs, func(r cost) time.Duration { return r.Wall }),
		CPU:  middle(runs, func(r cost) time.Duration { return r.CPU }),
		Peak: middle(runs, func(r cost) int64 { return r.Peak }),
	}
}

// middle returns the median of one figure. For an even number of runs, it is the mean of the middle
// two.
func middle[T ~int64](runs []cost, of func(cost) T) T {
	all := make([]T, len(runs))
	for i, r := range runs {
		all[i] = of(r)
	}
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

// interleave runs the contenders in turn, A B A B, so that other load affects both. A first
// round fills the page cache, and does not count.
func interleave(ctx context.Context, runs int, log string, all ...*contender) error {
	for i := range runs + 1 {
		for _, c := range all {
			measure := c.measure
			if measure == nil {
				measure = once
			}
			in := cmp.Or(c.log, log)
			r, err := measure(ctx, c.argv, in)
			if err != nil {
				return fmt.Errorf("%s < %s: %w", strings.Join(c.argv, " "), in, err)
			}
			if i > 0 {
				c.runs = append(c.runs, r)
			}
		}
	}
	return nil
}

// prepare returns a command with a new, empty cache, and without debuginfod servers, unless argv
// begins with assignments of other values. A nil stdout is the null device. cleanup removes the
// cache.
func prepare(ctx context.Context, argv []string, stdin *os.File, stdout io.Writer) (cmd *exec.Cmd, cleanup func(), err error) {
	cache, err := os.MkdirTemp("", "symfilter-bench-")
	if err != nil {
		return nil, nil, err
	}
	env, argv := assignments(argv)
	cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), "XDG_CACHE_HOME="+cache, "DEBUGINFOD_URLS="), env...)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	return cmd, func() { os.RemoveAll(cache) }, nil
}

func start(ctx context.Context, argv []string, stdin *os.File, stdout io.Writer) (cmd *exec.Cmd, cleanup func(), err error) {
	cmd, cleanup, err = prepare(ctx, argv, stdin, stdout)
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		cleanup()
		return nil, nil, err
	}
	return cmd, cleanup, nil
}

// assignments splits NAME=VALUE words off the beginning of a command, as a shell does.
func assignments(argv []string) (env, command []string) {
	i := 0
	for i < len(argv)-1 && strings.Contains(argv[i], "=") {
		i++
	}
	return argv[:i], argv[i:]
}

func costOf(state *os.ProcessState, wall time.Duration) cost {
	usage := state.SysUsage().(*syscall.Rusage)
	return cost{Wall: wall, CPU: state.UserTime() + state.SystemTime(), Peak: int64(usage.Maxrss) << 10}
}

// once runs a command with the log as input, and the null device as output.
func once(ctx context.Context, argv []string, log string) (cost, error) {
	in, err := os.Open(log)
	if err != nil {
		return cost{}, err
	}
	defer in.Close()
	begin := time.Now()
	cmd, cleanup, err := start(ctx, argv, in, nil)
	if err != nil {
		return cost{}, err
	}
	defer cleanup()
	if err := cmd.Wait(); err != nil {
		return cost{}, err
	}
	return costOf(cmd.ProcessState, time.Since(begin)), nil
}

// pipeSize is the size of all pipes. A contender that enlarges its pipes thus has no advantage.
const pipeSize = 1 << 20 // bytes; the limit for ordinary users

// betweenPipes runs cat LOG | command | cat. It measures the wall time of the pipeline, and the CPU
// time and memory of the command.
func betweenPipes(ctx context.Context, argv []string, log string) (cost, error) {
	in, err := os.Open(log)
	if err != nil {
		return cost{}, err
	}
	defer in.Close()
	var ends []*os.File
	closeEnds := func() {
		for _, f := range ends {
			f.Close()
		}
	}
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeEnds()
			return cost{}, err
		}
		ends = append(ends, r, w)
		if err := setPipeSize(w, pipeSize); err != nil {
			closeEnds()
			return cost{}, err
		}
	}
	begin := time.Now()
	stages := []struct {
		argv []string
		in   *os.File
		out  io.Writer
	}{{[]string{"cat"}, in, ends[1]}, {argv, ends[0], ends[3]}, {[]string{"cat"}, ends[2], nil}}
	var running []*exec.Cmd
	for _, s := range stages {
		cmd, cleanup, startErr := start(ctx, s.argv, s.in, s.out)
		if startErr != nil {
			err = startErr
			break
		}
		defer cleanup()
		running = append(running, cmd)
	}
	closeEnds()
	for _, cmd := range running {
		err = cmp.Or(err, cmd.Wait())
	}
	if err != nil {
		return cost{}, err
	}
	return costOf(running[1].ProcessState, time.Since(begin)), nil
}

// setPipeSize sets the capacity of a pipe. It uses SyscallConn, since File.Fd would make the file
// blocking.
func setPipeSize(f *os.File, size int) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	if err := raw.Control(func(fd uintptr) { _, setErr = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) }); err != nil {
		return err
	}
	return setErr
}
