package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/wording"
)

const (
	readBlock = 256 << 10 // bytes; larger blocks do not fit in the processor's caches
	// bytes of the first block; the heap touches 12 more pages for a block of 256 KiB
	firstBlock = 16 << 10
	// pause in the input after which an unfinished line, such as a prompt, is passed on, and an
	// unknown format is decided
	silence      = 100 * time.Millisecond
	standardName = "standard input"
)

// A stream filters inputs to out, one after the other.
type stream struct {
	out    *os.File
	diag   *diagnostics
	stop   *stopper
	engine func(in *os.File, label string, regular bool) engine // makes the engine for one input
	// print hints about inputs without a resolved address
	hints  bool
	isPort func(name string) bool // reports whether an input is a serial port
	// time to wait for a missing serial port; -1: no limit
	portWait time.Duration
	rate     int // rate of serial ports, in baud

	contextSaver *contextSaver // saves the context of standard input; nil: not saved

	// set if standard error is a terminal: each serial port is then announced before its device
	// sends anything
	announces bool

	unresolved doctor.Sum // unresolved addresses of the inputs that have ended
	current    int        // index of the current input; unused if files are followed

	unwritten bool // the output could not be written
	unread    bool // the reader of the output has closed it
	port      bool // an input was a serial port, which never ends by itself
}

type engine struct {
	io.WriteCloser
	// decides the format, and passes on an unfinished line; nil: nothing to flush
	flush      func() error
	unfinished func() bool // reports whether there is something to flush
	end        func()      // called after Close; may be nil
	// called before Close if the input was stopped before its end; may be nil
	cut    func()
	counts func() doctor.Counts // counts of the input so far; may be nil

	input   *input.Writer   // recognises the format; nil in the llvm style
	sniffer *doctor.Sniffer // examines the text; nil in the llvm style
}

// files filters the named inputs, each with its own context, and returns the exit code. It ends
// early if the output fails or a signal arrives. After an unreadable input, it continues with the
// next input.
func (s *stream) files(names []string, stdin *os.File) (code int) {
	for i, name := range names {
		s.current = i
		label := name
		if name == "-" {
			label = standardName
		}
		var readErr, writeErr error
		if name != "-" && s.isPort(name) {
			readErr, writeErr = s.filterPort(name)
		} else {
			in, err := s.open(name, stdin)
			if err != nil {
				s.diag.line("%s", err)
				code = exitIO
				continue
			}
			var e engine
			var live bool
			if e, live, readErr = s.engineFor(in, label); readErr == nil {
				readErr, writeErr = s.run(e, in, label, live)
			}
			if in != stdin {
				in.Close()
			}
		}
		var usage usageError
		var packed *input.UnpackError
		switch {
		case errors.Is(writeErr, syscall.EPIPE):
			s.unread = true
			return exitOK // the reader of the output has closed it
		case errors.As(writeErr, &usage):
			s.diag.line("%s: %v", label, usage)
			code = exitUsage
		case errors.As(writeErr, &packed):
			s.diag.line("%s: %v", label, packed)
			code = exitIO
		case writeErr != nil:
			s.unwritten = true
			s.diag.line("write standard output: %v", wording.Cause(writeErr))
			return exitIO
		case readErr != nil:
			s.diag.line("%s", readError(label, readErr))
			code = exitIO
		}
		if s.stop.signal() != 0 {
			break
		}
	}
	return code
}

// open opens the named input. Its error is a message for the user.
func (s *stream) open(name string, stdin *os.File) (in *os.File, err error) {
	in, label := stdin, standardName
	if name != "-" {
		label = name
		if in, err = os.Open(name); err != nil {
			return nil, errors.New(openError(name, err))
		}
	}
	if !sameRegular(in, s.out) {
		return in, nil
	}
	if in != stdin {
		in.Close()
	}
	// the input would grow while it is read
	return nil, fmt.Errorf("%s is also the output, and is not read", label)
}

func sameRegular(a, b *os.File) bool {
	first, err := a.Stat()
	if err != nil || !first.Mode().IsRegular() {
		return false
	}
	second, err := b.Stat()
	return err == nil && os.SameFile(first, second)
}

// exit stops the handling of signals, and returns the exit code of the run. code is the exit code
// of the inputs.
func (s *stream) exit(code int) int {
	sig := s.stop.end()
	if sig == 0 || s.port && sig == int(syscall.SIGINT) {
		return code
	}
	return exitSignal + sig
}

// engineFor returns the engine for an input. An input is live unless it is a regular file.
func (s *stream) engineFor(in *os.File, label string) (e engine, live bool, err error) {
	info, err := in.Stat()
	if err != nil {
		return e, false, err
	}
	regular := info.Mode().IsRegular()
	if !regular {
		enlargePipe(in)
	}
	return s.engine(in, label, regular), !regular, nil
}

// run filters an input until the input ends or the stopper ends reading. A live input may pause:
// after silence, an unfinished line is passed on.
func (s *stream) run(e engine, in io.Reader, label string, live bool) (readErr, writeErr error) {
	p := &pass{engine: e, contextSaver: s.contextSaver, done: make(chan struct{})}
	if s.contextSaver != nil {
		s.contextSaver.begin(p)
		s.stop.hangups.onHangup(s.contextSaver.save, p.done)
		s.stop.last.Store(s.contextSaver.await)
	}
	if live && p.flush != nil {
		p.silence = time.AfterFunc(silence, p.silent)
		p.silence.Stop()
	}
	go p.read(in)
	signaled := false
	select {
	case <-p.done:
	case <-s.stop.reading:
		signaled = true
	}
	p.stop(signaled)
	if s.hints && p.writeErr == nil {
		if hint := p.hint(label); hint != "" {
			s.diag.sum("%s: %s", label, hint)
		}
	}
	return p.readErr, p.writeErr
}

// A pass filters one input. Three goroutines use the filter, under mu: one reads, one flushes after
// a silence, and one ends the pass. The goroutine that ends the pass must not wait for a read,
// which may never return.
type pass struct {
	mu sync.Mutex
	engine
	ended    bool
	readErr  error
	writeErr error

	contextSaver *contextSaver // nil: the context is not kept
	silence      *time.Timer   // nil: pauses in the input have no effect
	done         chan struct{}
	once         sync.Once
}

func (p *pass) read(in io.Reader) {
	defer p.finished()
	block := make([]byte, firstBlock)
	for {
		n, err := in.Read(block)
		if !p.write(block[:n], err) {
			return
		}
		if n == len(block) && n < readBlock {
			block = make([]byte, readBlock)
		}
	}
}

// write filters a block. b and err are the results of one read. write returns false if reading must
// stop.
func (p *pass) write(b []byte, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	if len(b) > 0 {
		if _, p.writeErr = p.Write(b); p.writeErr != nil {
			return false
		}
	}
	if err != nil {
		if err != io.EOF {
			p.readErr = err
		}
		return false
	}
	p.contextSaver.look()
	if p.silence != nil {
		if p.unfinished() {
			p.silence.Reset(silence)
		} else {
			p.silence.Stop()
		}
	}
	return true
}

// silent passes on an unfinished line, or the start of an input of unknown format.
func (p *pass) silent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.writeErr != nil {
		return
	}
	if p.writeErr = p.flush(); p.writeErr != nil {
		p.finished()
	} else if p.input != nil && p.input.Undecided() { // compressed input may not be decompressed yet
		p.silence.Reset(silence)
	}
	p.contextSaver.look()
}

func (p *pass) finished() { p.once.Do(func() { close(p.done) }) }

// stop prints complete lines and ends the engine, which must not be used afterwards. signaled is
// set if a signal has ended the reading.
func (p *pass) stop(signaled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.silence != nil {
		p.silence.Stop()
	}
	if p.cut != nil && (p.writeErr != nil || signaled) {
		p.cut()
	}
	if err := p.Close(); p.writeErr == nil {
		p.writeErr = err
	}
	p.contextSaver.end()
	if p.end != nil {
		p.end()
	}
}
