//go:build linux

package main

import (
	"cmp"
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
	runs []cost
}

type cost struct {
	wall, cpu time.Duration
	peak      int64 // resident bytes
}

// median returns the median of each figure separately.
func (c *contender) median() cost {
	middle := func(of func(cost) int64) int64 {
		all := make([]int64, len(c.runs))
		for i, r := range c.runs {
			all[i] = of(r)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return cost{
		wall: time.Duration(middle(func(r cost) int64 { return int64(r.wall) })),
		cpu:  time.Duration(middle(func(r cost) int64 { return int64(r.cpu) })),
		peak: middle(func(r cost) int64 { return r.peak }),
	}
}

// interleave runs the contenders in turn, A B A B, so that other load on the machine affects both.
// A first round warms up the page cache and is not counted.
func interleave(runs int, log string, measure func(argv []string, log string) (cost, error), all ...*contender) error {
	for i := range runs + 1 {
		for _, c := range all {
			r, err := measure(c.argv, log)
			if err != nil {
				return fmt.Errorf("%s < %s: %w", strings.Join(c.argv, " "), log, err)
			}
			if i > 0 {
				c.runs = append(c.runs, r)
			}
		}
	}
	return nil
}

// start starts a process without a network, and with a new empty cache, so that it finds no index
// of an earlier run. A nil stdout is the null device.
func start(argv []string, stdin *os.File, stdout io.Writer) (cmd *exec.Cmd, cleanup func(), err error) {
	cache, err := os.MkdirTemp("", "symfilter-bench-")
	if err != nil {
		return nil, nil, err
	}
	env, argv := assignments(argv)
	cmd = exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), "XDG_CACHE_HOME="+cache, "DEBUGINFOD_URLS="), env...)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	if err := cmd.Start(); err != nil {
		os.RemoveAll(cache)
		return nil, nil, err
	}
	return cmd, func() { os.RemoveAll(cache) }, nil
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
	return cost{wall: wall, cpu: state.UserTime() + state.SystemTime(), peak: int64(usage.Maxrss) << 10}
}

// once runs a command with the log as input, and the null device as output.
func once(argv []string, log string) (cost, error) {
	in, err := os.Open(log)
	if err != nil {
		return cost{}, err
	}
	defer in.Close()
	begin := time.Now()
	cmd, cleanup, err := start(argv, in, nil)
	if err != nil {
		return cost{}, err
	}
	defer cleanup()
	if err := cmd.Wait(); err != nil {
		return cost{}, err
	}
	return costOf(cmd.ProcessState, time.Since(begin)), nil
}

// pipeSize is the size of both pipes for every contender, so that a contender that enlarges its
// pipes has no advantage.
const pipeSize = 1 << 20 // bytes; the limit for ordinary users

// betweenPipes runs cat LOG | command | cat. The wall time is that of the pipeline; CPU time and
// memory are the command's.
func betweenPipes(argv []string, log string) (cost, error) {
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
		cmd, cleanup, startErr := start(s.argv, s.in, s.out)
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

// setPipeSize uses the raw descriptor, because File.Fd would make it blocking.
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

func ratio(got, want float64) string {
	if want == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", got/want)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
