// Package serial reads the log of a device from a serial port, across resets and unplugging.
//
// The port disappears when the board restarts or the cable is pulled out, and returns under the
// same name some time later. A [Port] waits for that, and then continues to read.
package serial

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// DefaultRate is the rate of a port in baud if the operator gives none. ESP-IDF, Zephyr, NuttX and
// Linux consoles use it.
const DefaultRate = 115200

// lookAgain is the time between two attempts to open a missing port.
const lookAgain = time.Second

// errOrdinary is the error of configure for a file that is not a serial port.
var errOrdinary = errors.New("not a serial port")

// A Port is a serial port opened for reading. Read is not safe for concurrent use, but Close may be
// called during a Read.
type Port struct {
	path   string
	rate   int
	again  time.Duration // time between two attempts to open the port
	report func(message string)
	open   func(path string, rate int) (*os.File, error) // open, or a replacement in tests
	// returns the existing ports: the function list, or a test's replacement
	others func() []string

	limited  bool // GiveUp was called: the wait for a port that was never open ends after patience
	patience time.Duration
	missed   time.Duration // time spent waiting for the port so far

	found    bool      // the port was open once: any error may be temporary
	awaited  bool      // the wait for the port was reported
	opened   time.Time // time when the port was last opened
	lacks    error     // last reason why the port could not be opened
	told     error     // last reported value of lacks
	ordinary bool      // the file is not a serial port, and ends like any other file

	mu     sync.Mutex
	file   *os.File      // nil: the port is not open
	closed chan struct{} // closed by Close
}

// New returns the port at path, which need not exist yet. rate is in baud. The first Read opens the
// port. report is called when a wait for the port begins or ends, and when an existing port cannot
// be opened. Its messages do not contain the path.
func New(path string, rate int, report func(message string)) *Port {
	return &Port{path: path, rate: rate, again: lookAgain, report: report, open: open, others: list, closed: make(chan struct{})}
}

// GiveUp bounds how long Read waits for a port that was never open. It must be called before the
// first Read.
func (p *Port) GiveUp(after time.Duration) { p.limited, p.patience = true, after }

// Read reads at least one byte from the device. While the port is missing, Read tries to open it
// every second. It returns io.EOF after Close, and at the end of a file that is not a port. It
// returns another error after the time of GiveUp, or if a port that was never open cannot be
// opened. If the port was open before, Read retries: a new port gets its owner and mode a moment
// after it appears.
func (p *Port) Read(b []byte) (int, error) {
	for {
		file, err := p.current()
		if err != nil {
			return 0, err
		}
		if file == nil {
			if !p.sleep() {
				return 0, io.EOF
			}
			continue
		}
		n, err := file.Read(b)
		if n > 0 {
			return n, nil
		}
		if p.ordinary && !p.isClosed() {
			return 0, err
		}
		p.drop()
		// A port that ends as soon as it is open, for example after a hang-up, is reopened only
		// after a pause.
		if time.Since(p.opened) < p.again && !p.sleep() {
			return 0, io.EOF
		}
	}
}

// sleep waits until the next attempt to open the port. It returns false if the Port is closed.
func (p *Port) sleep() bool {
	select {
	case <-p.closed:
		return false
	case <-time.After(p.again):
		return true
	}
}

// current returns the open port. If the port is not open, current tries to open it. It returns nil
// without an error if Read must wait for the port.
func (p *Port) current() (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed() {
		return nil, io.EOF
	}
	if p.file != nil {
		return p.file, nil
	}
	file, err := p.open(p.path, p.rate)
	switch {
	case errors.Is(err, errOrdinary):
		p.ordinary = true
	case err == nil:
		if p.awaited {
			p.report("open")
		}
	case p.limited && !p.found && isAway(err) && p.missed >= p.patience:
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: fmt.Errorf("%w; %s", cause(err), p.alternatives())}
	case p.found || isAway(err):
		p.missed += p.again
		p.await(err)
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: fmt.Errorf("%w; %s", cause(err), whoMayRead(p.path))}
	default:
		return nil, err
	}
	p.file, p.found, p.awaited, p.lacks, p.told, p.opened = file, true, false, nil, nil, time.Now()
	return file, nil
}

// await reports the beginning of a wait for the port. During the wait, it reports an error only if
// two attempts in a row fail with that error: a new port gets its mode a moment after it appears. A
// missing file and the last reported error are not reported again.
func (p *Port) await(err error) {
	err = cause(err)
	before := p.lacks
	p.lacks = err
	if p.awaited && (errors.Is(err, fs.ErrNotExist) || !errors.Is(err, before) || errors.Is(err, p.told)) {
		return
	}
	p.told = err
	p.awaited = true
	text := err.Error()
	if !p.found && errors.Is(err, fs.ErrNotExist) {
		text += "; " + p.alternatives()
	}
	if p.limited && !p.found {
		p.report(fmt.Sprintf("%s; retrying every second, for %v", text, p.patience))
	} else {
		p.report(text + "; retrying every second, until Ctrl-C")
	}
}

// alternatives returns a message that lists up to eight existing ports.
func (p *Port) alternatives() string {
	const most = 8 // names in a message
	all := p.others()
	if len(all) == 0 {
		return "this machine has no serial adapter, such as /dev/ttyUSB0 or /dev/ttyACM0"
	}
	return "ports here: " + strings.Join(all[:min(len(all), most)], ", ")
}

// cause returns err without the path.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// drop closes the port after a failed read, and reports that it went away.
func (p *Port) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return
	}
	p.file.Close()
	p.file = nil
	if !p.isClosed() {
		p.awaited = true
		p.report("the device was disconnected; retrying every second, until Ctrl-C")
	}
}

func (p *Port) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// Close closes the port. A waiting Read returns.
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed() {
		return nil
	}
	close(p.closed)
	if p.file == nil {
		return nil
	}
	file := p.file
	p.file = nil
	return file.Close()
}
