package follow

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds how long a condition may take on a busy machine.
const patience = time.Minute

type log struct {
	mu     sync.Mutex
	out    map[string]*bytes.Buffer // by name
	events []string
}

type recorder struct {
	l     *log
	name  string
	quiet bool
	whole bytes.Buffer // all lines, including quiet ones
}

func (r *recorder) Write(p []byte) (int, error) {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.whole.Write(p)
	if !r.quiet {
		r.l.out[r.name].Write(p)
	}
	return len(p), nil
}

func (r *recorder) Close() error { return nil }

func newLog() *log { return &log{out: make(map[string]*bytes.Buffer)} }

func (l *log) open(name string) (*Sink, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out[name] == nil {
		l.out[name] = new(bytes.Buffer)
	}
	r := &recorder{l: l, name: name}
	return &Sink{WriteCloser: r, Quiet: func(on bool) { r.quiet = on }}, nil
}

// A gate blocks writes until it is opened.
type gate struct {
	opened  chan struct{}
	waiting chan struct{} // closed when a writer is blocked
	once    sync.Once
}

func newGate() *gate { return &gate{opened: make(chan struct{}), waiting: make(chan struct{})} }

func (g *gate) open() { close(g.opened) }

func (l *log) gated(g *gate) func(string) (*Sink, error) {
	return func(name string) (*Sink, error) {
		sink, err := l.open(name)
		sink.WriteCloser = gatedWriter{sink.WriteCloser, g}
		return sink, err
	}
}

type gatedWriter struct {
	io.WriteCloser
	*gate
}

func (w gatedWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.waiting) })
	<-w.opened
	return w.WriteCloser.Write(p)
}

func (l *log) notify(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !e.Routine {
		l.events = append(l.events, strings.TrimPrefix(filepath.Base(e.Name)+": "+e.Message, ".: "))
	}
}

func (l *log) text(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.out[name]; b != nil {
		return b.String()
	}
	return ""
}

// messages returns the messages of all events that are not routine.
func (l *log) messages() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.events, "\n")
}

type running struct {
	*log
	t      *testing.T
	f      *Follower
	cancel context.CancelFunc
	done   chan error
}

func begin(t *testing.T, l *log, o Options, change ...func(*Follower)) *running {
	t.Helper()
	if o.Open == nil {
		o.Open = l.open
	}
	if o.Notify == nil {
		o.Notify = l.notify
	}
	if o.Interval == 0 {
		o.Interval = 20 * time.Millisecond
	}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{l, t, f, cancel, make(chan error, 1)}
	go func() { r.done <- f.Run(ctx) }()
	t.Cleanup(func() { r.end() })
	return r
}

// end stops the Follower, and returns the error of Run.
func (r *running) end() error {
	r.cancel()
	err := <-r.done
	r.done <- err
	return err
}

// looking calls do, and calls Look every 5 ms until do returns. One call of Look is not enough:
// files that are renamed during a look are searched again by the next look.
func (r *running) looking(do func()) {
	r.t.Helper()
	end, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			r.f.Look()
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	defer func() { close(end); <-ended }()
	do()
}

func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s: not after %v; told:\n%s", what, patience, r.messages())
		}
	}
}

// expect waits until the output for name is as long as want, and compares them.
func (r *running) expect(name, want string) {
	r.t.Helper()
	end := time.Now().Add(patience)
	for len(r.text(name)) < len(want) && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
	if got := r.text(name); got != want {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		r.t.Fatalf("%s: got %d bytes, want %d; from byte %d on got\n%.300s\nwant\n%.300s\ntold: %s", name, len(got), len(want), i, got[i:], want[i:], r.messages())
	}
}

func setTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func bothWays(t *testing.T, test func(t *testing.T, o Options)) {
	t.Run("events", func(t *testing.T) { t.Parallel(); test(t, Options{}) })
	t.Run("polling", func(t *testing.T) { t.Parallel(); test(t, Options{Poll: true}) })
}

func TestAppendedLinesAreRead(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		path := filepath.Join(t.TempDir(), "app.log")
		write(t, path, "one\ntwo\n")
		o.Names = []string{path}
		r := begin(t, newLog(), o)
		r.expect(path, "one\ntwo\n")
		write(t, path, "three\nfo")
		r.expect(path, "one\ntwo\nthree\n")
		write(t, path, "ur\n")
		r.expect(path, "one\ntwo\nthree\nfour\n")
		write(t, path, "no end")
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestRenamedFilesAreReadToTheirEnd(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		path := filepath.Join(t.TempDir(), "app.log")
		write(t, path, "one\n")
		o.Names = []string{path}
		r := begin(t, newLog(), o)
		r.expect(path, "one\n")
		rename(t, path, path+".1")
		write(t, path+".1", "two\n")
		write(t, path, "three\n")
		r.expect(path, "one\ntwo\nthree\n")
		write(t, path+".1", "late\n")
		r.expect(path, "one\ntwo\nthree\nlate\n")
	})
}
