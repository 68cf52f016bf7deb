// Package serial reads the log of a device from a serial port, across resets and unplugging.
//
// A board that restarts, or whose cable is pulled out, loses its port, which returns under the same
// name some time later. A [Port] waits for it, and continues to read.
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

// DefaultRate is the rate of a port in baud if the operator gives none: the rate of ESP-IDF,
// Zephyr, NuttX and Linux consoles.
const DefaultRate = 115200

// lookAgain is how often a missing port is looked for.
const lookAgain = time.Second

// errOrdinary is the error of configure for a file that is not a serial port.
var errOrdinary = errors.New("not a serial port")

// A Port is a serial port that is read. Read must be used by one goroutine at a time; Close may be
// called at the same time by another one.
type Port struct {
	path   string
	rate   int
	again  time.Duration // time between two looks for it
	report func(message string)
	open   func(path string, rate int) (*os.File, error) // open, or a replacement in tests
	// returns the existing ports: list, or a replacement in tests
	others func() []string

	limited  bool // a port that was never open is looked for no longer than patience
	patience time.Duration
	missed   time.Duration // time for which it was looked for

	found    bool      // the port was open once, so any error may pass
	awaited  bool      // it was reported that the port is waited for
	opened   time.Time // when it was opened last
	lacks    error     // why it could not be opened the last time
	told     error     // the last value of lacks that was reported
	ordinary bool      // the file is not a serial port, and ends like any other

	mu     sync.Mutex
	file   *os.File      // nil: the port is not open
	closed chan struct{} // closed by Close
}

// New returns the port at path, which need not be there yet, at a rate in baud. Nothing is opened
// before the first Read. report is called with a message, without the path, when the wait for the
// port begins, when the port exists and cannot be opened, and when it is open again.
func New(path string, rate int, report func(message string)) *Port {
	return &Port{path: path, rate: rate, again: lookAgain, report: report, open: open, others: list, closed: make(chan struct{})}
}

// GiveUp bounds the time for which Read looks for a port that was never open. It must be called
// before the first Read.
func (p *Port) GiveUp(after time.Duration) { p.limited, p.patience = true, after }

// Read reads what the device has sent, at least one byte. While the port is away, Read looks for it
// every second. It returns io.EOF after Close, and at the end of a file that is not a port, and
// another error if the time of GiveUp is over, or if the port exists and cannot be opened. If the
// port was open before, Read waits instead: the port's owner and rights may not be set yet.
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
		// A port that ends as soon as it is open, for instance after a hang-up, is opened again
		// only after a pause.
		if time.Since(p.opened) < p.again && !p.sleep() {
			return 0, io.EOF
		}
	}
}

// sleep waits for the time after which the port is looked for again. It returns false if the port
// is closed.
func (p *Port) sleep() bool {
	select {
	case <-p.closed:
		return false
	case <-time.After(p.again):
		return true
	}
}

// current returns the open port, nil if it is not there at the moment.
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

// await reports once that the port is waited for. Later it reports why the port cannot be opened,
// once two tries in a row have the same error: the rights of a port are set a moment after the port
// appears.
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

// alternatives returns which ports are there.
func (p *Port) alternatives() string {
	const most = 8 // names in a message
	all := p.others()
	if len(all) == 0 {
		return "this machine has no port of an adapter, such as /dev/ttyUSB0 or /dev/ttyACM0"
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

// drop closes the port, which has gone away.
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
		p.report("the device went away; retrying every second, until Ctrl-C")
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

// Close ends a Read that waits, and closes the port.
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
