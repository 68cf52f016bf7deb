package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/symfilter/symfilter/internal/sandbox"
	"github.com/symfilter/symfilter/internal/serial"
)

const defaultRate = "115200" // serial.DefaultRate, for the help

// Rates that --baud takes. An adapter may not support each of them.
const (
	minRate = 50        // baud: the slowest that Linux names
	maxRate = 100 << 20 // baud: more than any adapter has
)

type baud int

func (b *baud) String() string { return "" }

func (b *baud) Set(word string) error {
	n, err := strconv.Atoi(word)
	if err != nil || n < minRate || n > maxRate {
		return fmt.Errorf("%q is not a rate in baud, such as %d", word, serial.DefaultRate)
	}
	*b = baud(n)
	return nil
}

func (c *config) rate() int {
	if c.baud == 0 {
		return serial.DefaultRate
	}
	return int(c.baud)
}

// portWait returns how long the run waits for a missing port. At a terminal, where a user can
// interrupt, it returns -1: no limit.
func (c *config) portWait(std standard) time.Duration {
	switch {
	case isTerminal(std.in) || isTerminal(std.out):
		return -1
	case c.wait.set:
		return c.wait.Duration
	}
	return waitFile
}

// isPort reports whether name is a serial port. With --baud, a name without a file is a port that
// does not exist yet.
func (c *config) isPort(name string) bool {
	return name != "" && name != "-" && (serial.Names(name) || c.baud != 0 && isMissing(name))
}

func isMissing(name string) bool {
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// checkPorts returns an error if the flags for serial ports do not fit the files.
func (c *config) checkPorts(files []string) error {
	i := slices.IndexFunc(files, c.isPort)
	switch {
	case c.follow.on && i >= 0:
		return usageError{fmt.Errorf("%s is a serial port, which is read until Ctrl-C even without --follow: remove --follow", files[i])}
	case c.baud != 0 && i < 0:
		return usageError{errors.New("--baud needs a FILE that is a serial port, such as /dev/ttyUSB0")}
	}
	return nil
}

// deviceFolders returns the folders where serial ports may appear again. The confined process must
// be able to set up such a port, even if a link then leads to another device.
func (c *config) deviceFolders(files []string) (dirs []string) {
	for _, name := range files {
		if !c.isPort(name) {
			continue
		}
		if full, err := filepath.Abs(name); err == nil {
			dirs = append(dirs, "/dev", filepath.Dir(full), sandbox.FolderOf(full))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// filterPort filters the log of a serial port until a signal arrives, or the port cannot be read.
func (s *stream) filterPort(name string) (readErr, writeErr error) {
	s.port = true
	if s.announces {
		s.diag.printf("%s: reading at %d baud; end with Ctrl-C", name, s.rate)
	}
	port := serial.New(name, s.rate, func(message string) { s.diag.printf("%s: %s", name, message) })
	if s.portWait >= 0 {
		port.GiveUp(s.portWait)
	}
	defer port.Close()
	return s.run(s.engine(nil, name, false), port, name, true)
}
