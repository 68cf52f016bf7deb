//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// glance is the interval between checks for a complete output. Wall times from file to file
	// may be too long by one glance.
	glance = time.Millisecond

	// patience is the longest time that a daemon may run, since a daemon does not end by itself.
	patience = 10 * time.Minute

	// ioSize is the size in bytes of the HTTP client's buffers.
	ioSize = 256 << 10
)

// daemon holds the programs and files of a benchmark row for symfilterd. symfilterd reads a file or
// a Unix socket, so it needs neither rights nor a network. The folder dir is removed after the row.
type daemon struct {
	symfilter  []string // symfilter as a filter, with its flags
	symfilterd string
	tree       string // folder of debug files
	log        string
	dir        string // folder for the configuration, sockets, outputs and checkpoints
	size       int64  // bytes of symfilter's output for the log; the daemon must write the same
}

// newDaemon builds symfilterd, and runs symfilter for the output that the daemon must write.
func newDaemon(ctx context.Context, b *binaries, p *programs, log, dir string) (*daemon, error) {
	d := &daemon{
		symfilter:  filtering(b, p.symfilter).argv,
		symfilterd: p.symfilter + "d",
		tree:       b.tree(plainTree),
		log:        log,
		dir:        dir,
	}
	if err := build(ctx, d.symfilterd, "symfilterd"); err != nil {
		return nil, err
	}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		return nil, err
	}
	in, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := os.Create(d.want())
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd, cleanup, err := prepare(ctx, d.symfilter, in, out)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	info, err := out.Stat()
	if err != nil {
		return nil, err
	}
	d.size = info.Size()
	return d, nil
}

// want returns the path of the file with the output that the daemon must write.
func (d *daemon) want() string { return filepath.Join(d.dir, "want") }

// configure writes a configuration with one pipeline, and returns the daemon's command line.
func (d *daemon) configure(state, input, output string) ([]string, error) {
	path := filepath.Join(d.dir, "symfilter.yaml")
	text := fmt.Sprintf("log: {level: warn}\nsymbols: {debug_file_directories: [%q], no_default_debug_directories: true}\n"+
		"%spipelines: {bench: {input: {%s}, output: {%s}}}\n", d.tree, state, input, output)
	return []string{d.symfilterd, "--config", path}, os.WriteFile(path, []byte(text), 0o600)
}

// fileToFile compares symfilter --follow with a daemon that follows the log and keeps
// checkpoints. Timing stops when the output is complete, even if it is not yet on the disk.
func fileToFile(d *daemon) (other, mine *contender, err error) {
	state, output := filepath.Join(d.dir, "state"), filepath.Join(d.dir, "output")
	argv, err := d.configure(fmt.Sprintf("state: %q\n", state), fmt.Sprintf("files: [%q]", d.log), fmt.Sprintf("file: %q, sync: never", output))
	if err != nil {
		return nil, nil, err
	}
	mine, other = contend(argv...), contend(append(d.symfilter, "--follow", "-q", d.log)...)
	run := func(print bool) func(ctx context.Context, argv []string, _ string) (cost, error) {
		compared := false
		return func(ctx context.Context, argv []string, _ string) (cost, error) {
			for _, old := range []string{state, output} {
				if err := os.RemoveAll(old); err != nil {
					return cost{}, err
				}
			}
			var stdout io.Writer
			if print {
				f, err := os.Create(output)
				if err != nil {
					return cost{}, err
				}
				defer f.Close()
				stdout = f
			}
			c, err := d.untilWritten(ctx, argv, stdout, output)
			if err == nil && !compared {
				compared = true
				err = d.compareFile(output)
			}
			return c, err
		}
	}
	mine.measure, other.measure = run(false), run(true)
	return other, mine, nil
}

// untilWritten runs a command until the file output is complete, then ends it.
func (d *daemon) untilWritten(ctx context.Context, argv []string, stdout io.Writer, output string) (cost, error) {
	r, err := d.start(ctx, argv, stdout)
	if err != nil {
		return cost{}, err
	}
	defer r.kill()
	err = r.wait(func() bool {
		info, err := os.Stat(output)
		return err == nil && info.Size() >= d.size
	})
	if err != nil {
		return cost{}, err
	}
	return r.stop(time.Since(r.begin))
}

// overHTTP compares symfilter between pipes with a daemon that answers a request with the log.
// It measures the wall time of the request, and the CPU time of the daemon from start to end.
func overHTTP(d *daemon) (other, mine *contender, err error) {
	socket := filepath.Join(d.dir, "socket")
	argv, err := d.configure("", fmt.Sprintf("http: %q", "unix:"+socket), "peer: true")
	if err != nil {
		return nil, nil, err
	}
	mine, other = contend(argv...), contend(d.symfilter...)
	other.measure = betweenPipes
	compared := false
	mine.measure = func(ctx context.Context, argv []string, log string) (cost, error) {
		r, err := d.start(ctx, argv, nil)
		if err != nil {
			return cost{}, err
		}
		defer r.kill()
		err = r.wait(func() bool {
			c, err := net.Dial("unix", socket)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
		if err != nil {
			return cost{}, err
		}
		begin := time.Now()
		if err := d.post(ctx, socket, log, !compared); err != nil {
			return cost{}, err
		}
		compared = true
		return r.stop(time.Since(begin))
	}
	return other, mine, nil
}

// post sends the log to the daemon, and reads the answer. If compare is set, it checks the answer.
func (d *daemon) post(ctx context.Context, socket, log string, compare bool) error {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		},
		ReadBufferSize:  ioSize,
		WriteBufferSize: ioSize,
	}
	defer transport.CloseIdleConnections()
	body, err := os.Open(log)
	if err != nil {
		return err
	}
	defer body.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://symfilterd/v1/filter", body)
	if err != nil {
		return err
	}
	info, err := body.Stat()
	if err != nil {
		return err
	}
	request.ContentLength = info.Size()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	if compare {
		return d.compare(answer.Body)
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, answer.Body, make([]byte, ioSize))
	if err == nil && n != d.size {
		err = fmt.Errorf("an answer of %d bytes; want %d", n, d.size)
	}
	return err
}

// running is a started daemon.
type running struct {
	cmd     *exec.Cmd
	cleanup func()
	begin   time.Time
	ended   chan error
	over    bool
}

// start starts a command that runs until stop, with the caller's standard error.
func (d *daemon) start(ctx context.Context, argv []string, stdout io.Writer) (*running, error) {
	in, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	cmd, cleanup, err := prepare(ctx, argv, in, stdout)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	r := &running{cmd: cmd, cleanup: cleanup, begin: time.Now(), ended: make(chan error, 1)}
	if err := cmd.Start(); err != nil {
		cleanup()
		return nil, err
	}
	go func() { r.ended <- cmd.Wait() }()
	return r, nil
}

// wait waits until ready returns true. It fails if the command ends first, or after patience.
func (r *running) wait(ready func() bool) error {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for !ready() {
		if time.Since(r.begin) > patience {
			return fmt.Errorf("not ready after %v", patience)
		}
		select {
		case err := <-r.ended:
			r.over = true
			if err == nil {
				err = errors.New("status 0")
			}
			return fmt.Errorf("it ended early: %w", err)
		case <-tick.C:
		}
	}
	return nil
}

// stop ends the command as a service manager does. It returns the command's cost, with the wall
// time that the caller measured.
func (r *running) stop(wall time.Duration) (cost, error) {
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return cost{}, err
	}
	err := <-r.ended
	r.over = true
	if !endedBy(r.cmd.ProcessState, syscall.SIGTERM) {
		return cost{}, err
	}
	return costOf(r.cmd.ProcessState, wall), nil
}

// endedBy reports whether a process succeeded, or the signal ended it. symfilter exits with 128
// plus the signal's number, as a shell does.
func endedBy(state *os.ProcessState, signal syscall.Signal) bool {
	status, _ := state.Sys().(syscall.WaitStatus)
	return state.Success() || status.Signaled() && status.Signal() == signal || status.ExitStatus() == 128+int(signal)
}

// kill ends the command if stop has not, and removes its cache.
func (r *running) kill() {
	if !r.over {
		r.cmd.Process.Kill()
		<-r.ended
	}
	r.cleanup()
}

func (d *daemon) compareFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.compare(f)
}

// compare reads an output. It fails if the output differs from symfilter's.
func (d *daemon) compare(output io.Reader) error {
	want, err := os.Open(d.want())
	if err != nil {
		return err
	}
	defer want.Close()
	at, err := firstDifference(output, want)
	if err == nil && at >= 0 {
		err = fmt.Errorf("the output differs from symfilter's at byte %d", at)
	}
	return err
}

// firstDifference returns the offset of the first byte that differs, or -1 if a and b are equal.
func firstDifference(a, b io.Reader) (int64, error) {
	var chunks [2][]byte
	for i := range chunks {
		chunks[i] = make([]byte, ioSize)
	}
	for at := int64(0); ; {
		n, err := io.ReadFull(a, chunks[0])
		m, errB := io.ReadFull(b, chunks[1])
		for _, err := range []error{err, errB} {
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return 0, err
			}
		}
		if x, y := chunks[0][:n], chunks[1][:m]; !bytes.Equal(x, y) {
			i := 0
			for i < min(n, m) && x[i] == y[i] {
				i++
			}
			return at + int64(i), nil
		}
		if err != nil { // both ended
			return -1, nil
		}
		at += int64(n)
	}
}
