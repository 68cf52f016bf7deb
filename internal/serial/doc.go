// Package serial reads the log of a device from a serial port, across resets and unplugging.
//
// A board that restarts, or whose cable is pulled out, takes its port away, and brings it back under
// the same name some time later. A [Port] waits for that, and goes on reading.
package serial

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// DefaultRate is the rate of a port in baud if the operator gives none: that of the consoles of
// ESP-IDF, Zephyr, NuttX and Linux.
const DefaultRate = 115200

// lookAgain is how often a port is looked for that is not there.
const lookAgain = time.Second

// errOrdinary is the error of configure for a file that is not a serial port.
var errOrdinary = errors.New("not a serial port")

// A Port is a serial port that is read. Read must be used by one goroutine at a time; Close may be
// called at the same time by another one.
type Port struct {
	path   string
	rate   int
	again  time.Duration // how often it is looked for
	report func(message string)

	found    bool // the port was open once: what it lacks now, it may have again
	awaited  bool // it was reported that the port is waited for
	ordinary bool // the file is not a serial port, and ends like any other

	mu     sync.Mutex
	file   *os.File      // nil: the port is not open
	closed chan struct{} // closed by Close
}

// New returns the port at path, which need not be there yet, at a rate in baud. Nothing is opened
// before the first Read. report is called with a message without the path each time the port is
// waited for and when it is there.
func New(path string, rate int, report func(message string)) *Port {
	return &Port{path: path, rate: rate, again: lookAgain, report: report, closed: make(chan struct{})}
}

// Read reads what the device has sent, at least one byte. While the port is away, Read looks for it
// every second. It returns io.EOF after Close only, and another error if the port is there and
// cannot be opened, unless it was open before: then its owner and rights may not be set yet.
func (p *Port) Read(b []byte) (int, error) {
	for {
		file, err := p.current()
		if err != nil {
			return 0, err
		}
		if file == nil {
			select {
			case <-p.closed:
				return 0, io.EOF
			case <-time.After(p.again):
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
	file, err := open(p.path, p.rate)
	switch {
	case errors.Is(err, errOrdinary):
		p.ordinary = true
	case err == nil:
		if p.awaited {
			p.report("open")
		}
	case p.found || isAway(err):
		p.await(err)
		return nil, nil
	default:
		return nil, err
	}
	p.file, p.found, p.awaited = file, true, false
	return file, nil
}

// await reports once that the port is waited for.
func (p *Port) await(err error) {
	if p.awaited {
		return
	}
	p.awaited = true
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	p.report(err.Error() + "; it is looked for every second, until Ctrl-C")
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
		p.report("the device went away; it is looked for every second, until Ctrl-C")
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
