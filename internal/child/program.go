//go:build linux

package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Program is a program that was started.
type Program struct {
	PID     int
	Path    string       // absolute
	Outputs []*Output    // one if standard output and error are the same file, else two
	Plain   error        // why an output for a terminal is a pipe; nil if that did not happen
	started bool         // this process had a terminal at the start
	group   int          // process group of this process; the sandbox does not let it ask later
	ended   atomic.Int64 // nanoseconds when Wait saw the end; 0: not yet
}

// An Output is an output of the program. Read returns its text, and io.EOF once no process has the
// output open. After the time that Ended sets, Read does not wait: it returns io.EOF if no text is
// ready.
type Output struct {
	To       *os.File // destination of the text
	from     *os.File // our end; the program has the other end
	terminal bool
	late     int  // bytes read after the time of Ended
	left     bool // when all text was read, other processes had the output open
}

// pipeSize is the capacity of a pipe or a pseudo-terminal, in bytes. When the program ends, up to
// this much of its text may be unread.
const pipeSize = 64 << 10

// Start starts the program called name with these streams. It searches PATH, as a shell does.
func Start(name string, args []string, in, out, err *os.File) (*Program, error) {
	path, failed := exec.LookPath(name)
	if failed != nil {
		return nil, failed
	}
	p := &Program{started: hasTerminal(), group: unix.Getpgrp()}
	p.Path, _ = filepath.Abs(path) // empty without a working folder
	theirs := []*os.File{in}
	defer func() {
		for _, f := range theirs[1:] {
			f.Close()
		}
	}()
	for _, to := range Files(out, err) {
		o, end, failed := p.newOutput(to)
		if failed != nil {
			p.Close()
			return nil, failed
		}
		p.Outputs, theirs = append(p.Outputs, o), append(theirs, end)
	}
	files := []*os.File{in, theirs[1], theirs[len(theirs)-1]}
	// the program must not inherit the ignored signal; Reset would not change that
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	process, failed := os.StartProcess(path, append([]string{name}, args...), &os.ProcAttr{Files: files})
	signal.Ignore(syscall.SIGPIPE)
	if failed != nil {
		p.Close()
		return nil, failed
	}
	p.PID = process.Pid
	return p, nil
}

// Files returns the destinations of the outputs of a program: out alone if out and err are the same
// file, else both.
func Files(out, err *os.File) []*os.File {
	if isSame(out, err) {
		return []*os.File{out}
	}
	return []*os.File{out, err}
}

// IsMissing reports whether an error of Start means that the program does not exist.
func IsMissing(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// Reason returns the reason for an error of Start, worded for users.
func Reason(err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("not found in the folders of PATH")
	case errors.Is(err, exec.ErrDot):
		return errors.New("found in the current folder only: write ./ before the name")
	case errors.Is(err, syscall.ENOEXEC):
		return errors.New("neither a program nor a script with #! and an interpreter")
	}
	if failed, ok := errors.AsType[*exec.Error](err); ok {
		return failed.Err
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
		return missingPart(failed)
	}
	return err
}

// missingPart returns an error about the missing interpreter or loader of an existing program.
// Otherwise it returns err.
func missingPart(err *fs.PathError) error {
	f, failed := os.Open(err.Path)
	if failed != nil {
		return err
	}
	defer f.Close()
	begin, _ := io.ReadAll(io.LimitReader(f, 256)) // as much as the kernel reads
	if rest, isScript := bytes.CutPrefix(begin, []byte("#!")); isScript {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		if words := bytes.Fields(line); len(words) > 0 {
			return fmt.Errorf("the first line names the interpreter %s, which does not exist", words[0])
		}
		return err
	}
	return errors.New("the dynamic loader that the program names does not exist: the program may be for another distribution or architecture")
}

func isSame(a, b *os.File) bool {
	first, err := a.Stat()
	if err != nil {
		return false
	}
	second, err := b.Stat()
	return err == nil && os.SameFile(first, second)
}

// newOutput returns an Output for the text to a file, and the end that the program writes to. If
// the file is a terminal, the output is a pseudo-terminal, or a pipe if that fails, as in some
// containers.
func (p *Program) newOutput(to *os.File) (o *Output, end *os.File, err error) {
	o = &Output{To: to}
	if isTerminal(to) {
		if o.from, end, err = openTerminal(to); err == nil {
			o.terminal = true
			return o, end, nil
		}
		p.Plain = err
	}
	o.from, end, err = os.Pipe()
	return o, end, err
}

func (o *Output) Read(b []byte) (n int, err error) {
	n, err = o.from.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = o.readLate(b)
	}
	if o.terminal && errors.Is(err, unix.EIO) { // no process has the other end
		err = io.EOF
	}
	return n, err
}

// readLate reads text that is ready, without waiting. It returns io.EOF if no text is ready, or
// once it has read pipeSize bytes.
func (o *Output) readLate(b []byte) (n int, err error) {
	if o.late >= pipeSize {
		o.left = true
		return 0, io.EOF
	}
	control(o.from, func(fd int) { n, err = unix.Read(fd, b) })
	switch {
	case err == unix.EAGAIN:
		o.left = true
		return 0, io.EOF
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	o.late += n
	return n, nil
}

// Ended limits how long Read waits for text after the end of the program. Text that the program has
// written before is still read.
func (p *Program) Ended(wait time.Duration) {
	for _, o := range p.Outputs {
		o.from.SetReadDeadline(time.Now().Add(wait))
	}
}

// Left reports whether Read stopped reading an output that other processes still had open. Call
// Left after all Reads.
func (p *Program) Left() bool {
	return slices.ContainsFunc(p.Outputs, func(o *Output) bool { return o.left })
}

// Close closes our end. A process that writes to the other end then gets SIGPIPE, or EIO on a
// pseudo-terminal.
func (o *Output) Close() error { return o.from.Close() }

// Close closes our ends of the outputs.
func (p *Program) Close() {
	for _, o := range p.Outputs {
		o.Close()
	}
}

// Wait waits until the program has ended, and returns its status. It calls stopped with each signal
// that stops the program. In the first process of a container, it also awaits orphans.
func (p *Program) Wait(stopped func(syscall.Signal)) (status syscall.WaitStatus, err error) {
	awaited := p.PID
	if os.Getpid() == 1 { // orphans of the container become children of this process
		awaited = -1
	}
	for {
		switch pid, err := syscall.Wait4(awaited, &status, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return status, err
		case pid != p.PID: // an orphan, which is gone now
		case status.Stopped():
			stopped(status.StopSignal())
		default:
			p.ended.Store(time.Now().UnixNano())
			return status, nil
		}
	}
}

// EndedBefore reports whether the time ago has passed since Wait saw the program end.
func (p *Program) EndedBefore(ago time.Duration) bool {
	ended := p.ended.Load()
	return ended != 0 && time.Since(time.Unix(0, ended)) >= ago
}
