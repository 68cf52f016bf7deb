package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// Pauses before a write to a full disk is tried again.
const (
	fullPause = 100 * time.Millisecond
	fullMost  = 5 * time.Second
)

// A fileOutput appends to a file.
type fileOutput struct {
	path string // empty: file is standard output, which is not closed
	mode fs.FileMode

	mu   sync.Mutex
	file *os.File
	trouble
}

func newFileOutput(f *os.File, _ Output) *fileOutput { return &fileOutput{file: f} }

// openFileOutput opens the file of c, or makes it.
func openFileOutput(c Output) (*fileOutput, error) {
	o := &fileOutput{path: c.File, mode: fs.FileMode(c.Mode)}
	if o.mode == 0 {
		o.mode = 0o640
	}
	return o, o.reopen()
}

func (o *fileOutput) write(ctx context.Context, _ string, p []byte) (written int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for pause := fullPause; ; pause = min(2*pause, fullMost) {
		n, err := o.file.Write(p[written:])
		written += n
		if err == nil || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			o.succeed()
			return written, err
		}
		o.fail(err)
		select {
		case <-ctx.Done():
			return written, errReplaced
		case <-time.After(pause):
		}
	}
}

func (o *fileOutput) reopen() error {
	if o.path == "" {
		return nil
	}
	f, err := os.OpenFile(o.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, o.mode)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		o.file.Close()
	}
	o.file = f
	return nil
}

func (o *fileOutput) close() error {
	if o.path == "" {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file.Close()
}
