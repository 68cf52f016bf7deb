package follow

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A changing is a sink whose context changes without a write.
type changing struct {
	mu      sync.Mutex
	context string
	changed bool
}

func (c *changing) set(context string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.context, c.changed = context, true
}

func (c *changing) open(string) (*Sink, error) {
	return &Sink{
		WriteCloser: struct {
			io.Writer
			io.Closer
		}{io.Discard, io.NopCloser(nil)},
		Context: func(dst []byte) ([]byte, bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return append(dst, c.context...), true
		},
		Changed: func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			was := c.changed
			c.changed = false
			return was
		},
	}, nil
}

func TestContextsThatChangeWithoutLinesAreSaved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	write(t, path, "a line\n")
	c := &changing{context: "at first"}
	o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Open: c.open}
	r := begin(t, newLog(), o)
	holds := func(text string) bool {
		state, _ := os.ReadFile(o.State)
		return bytes.Contains(state, []byte(text))
	}
	r.until("the checkpoint of the line", func() bool { return holds("at first") })
	c.set("later on")
	r.until("the checkpoint of the change", func() bool { return holds("later on") })
	c.set("at last")
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if !holds("at last") {
		t.Error("the change is not in the last checkpoint")
	}
}
