package follow

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheckpointsFollowTheOutput(t *testing.T) {
	const (
		soon    = 100 * time.Millisecond
		looks   = 10 * time.Millisecond
		busy    = 12 * time.Second
		records = int(busy/saveDelay) + 10
		syncs   = int(busy/syncInterval) + 2 // including the sync of the first record
	)
	dir := t.TempDir()
	path, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "state")
	write(t, path, "")
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		var syncing atomic.Int64
		f, err := New(Options{Names: []string{path}, Open: l.open, State: state, Poll: true, Interval: looks, Sync: func() error { syncing.Add(1); return nil }})
		if err != nil {
			t.Fatal(err)
		}
		now := lastBoot() // read before the fake clock starts
		f.saver.boot = func() boot { return now }
		written := 0
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		time.Sleep(time.Second)
		before := mustSize(state)

		write(t, path, "first\n")
		written += len("first\n")
		time.Sleep(looks + soon)
		if got := offsets(t, state, now)[path]; got != int64(written) {
			t.Errorf("%v after the first line the checkpoint says %d of %d bytes", soon, got, written)
		}
		first := mustSize(state) - before // size of one record
		worst := 0
		for begin := time.Now(); time.Since(begin) < busy; {
			for range 25 { // until the last check of the reader is about 250 ms old
				line := fmt.Sprintln(time.Now())
				write(t, path, line)
				written += len(line)
				time.Sleep(looks)
			}
			worst = max(worst, written-int(offsets(t, state, now)[path]))
		}
		if most := int(soon/looks+2) * len(fmt.Sprintln(time.Now())); worst > most {
			t.Errorf("the checkpoint was up to %d bytes late, want at most %d", worst, most)
		}
		if n := int((mustSize(state) - before) / first); n > records || n < records/3 {
			t.Errorf("%d records in %v, want at most %d", n, busy, records)
		}
		if synced := int(syncing.Load()); synced > syncs || synced < 2 {
			t.Errorf("%d syncs in %v, want at most %d", synced, busy, syncs)
		}
		time.Sleep(2 * syncInterval) // time for the last sync
		size, n := mustSize(state), syncing.Load()
		time.Sleep(time.Hour)
		if mustSize(state) != size || syncing.Load() != n {
			t.Errorf("without output %d bytes were written, and %d syncs made", mustSize(state)-size, syncing.Load()-n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestMuchOutputHasCheckpointsAtOnce(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "state")
	const size = 8 << 20
	write(t, path, strings.Repeat(strings.Repeat("x", 1023)+"\n", size>>10))
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		late := int64(0) // maximum output without a checkpoint, after the first turns
		now, begin := boot{}, time.Now()
		o := Options{Names: []string{path}, Open: l.open, State: state, Poll: true}
		var printed atomic.Int64
		o.Open = func(name string) (*Sink, error) {
			return &Sink{WriteCloser: writerFunc(func(p []byte) (int, error) {
				synctest.Wait() // until the checkpoint is written
				late = max(late, printed.Load()-offsets(t, state, now)[path])
				printed.Add(int64(len(p)))
				return len(p), nil
			})}, nil
		}
		f, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		now = lastBoot()
		f.saver.boot = func() boot { return now }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		for printed.Load() < size && time.Since(begin) < time.Minute {
			time.Sleep(saveDelay)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if most := int64(saveBytes + 4*readSize); printed.Load() != size || late > most {
			t.Errorf("of %d bytes printed up to %d were in no checkpoint, want at most %d", printed.Load(), late, most)
		}
	})
}

func TestLastCheckpointsDoNotWaitForBlockedSinks(t *testing.T) {
	const files = 20
	dir := t.TempDir()
	var names []string
	for i := range files {
		names = append(names, filepath.Join(dir, fmt.Sprintf("%02d.log", i)))
		write(t, names[i], "line\n")
	}
	l, g := newLog(), newGate()
	f := unstarted(t, Options{Names: names, State: filepath.Join(dir, "state"), Open: func(name string) (*Sink, error) {
		sink, err := l.open(name)
		if name == names[files/2] { // its output has no reader
			sink.Context = func([]byte) ([]byte, bool) { <-g.opened; return nil, true }
		}
		return sink, err
	}})
	for _, name := range names {
		turns(t, f, name)
	}
	r := &run{Follower: f, ctx: t.Context(), saving: newSaving(time.Now())}
	settled := make(chan struct{})
	go func() { defer close(settled); r.settle() }()
	last := &running{log: l, t: t}
	last.until("all other files are saved", func() bool {
		if err := f.Save(); err != nil { // a program saves before it exits
			t.Fatal(err)
		}
		f.saver.mu.Lock()
		defer f.saver.mu.Unlock()
		return len(f.saver.sources) == files-1
	})
	g.open()
	<-settled
	if err := f.saver.end(); err != nil {
		t.Error(err)
	}
	if got := len(offsets(t, f.saver.path)); got != files {
		t.Errorf("got %d files, want %d", got, files)
	}
	for _, name := range names {
		f.sources[name].close()
	}
}
