package follow

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Stats must report the unread and the lost bytes. The interval is an hour, so files are examined
// only after a call of Look.
func TestStatsTellLagAndLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // with a fake clock, listings take no time
		dir := t.TempDir()
		path, other := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
		write(t, path, "one\n")
		r := begin(t, newLog(), Options{Names: []string{path, other}, Poll: true, Interval: time.Hour})
		r.expect(path, "one\n")
		expect := func(what string, want Stats) {
			t.Helper()
			synctest.Wait()
			if got := r.f.Stats(); got != want {
				t.Errorf("%s: got %+v, want %+v", what, got, want)
			}
		}
		look := func() {
			for range 3 { // one look for each change that a turn leaves to the next
				r.f.Look()
				synctest.Wait()
			}
		}
		expect("a line is read", Stats{Files: 1, ReadBytes: 4})

		write(t, path, "three\n")
		expect("a line is not read yet", Stats{Files: 1, ReadBytes: 4, LagBytes: 6})
		rename(t, path, path+".1")
		write(t, path, "next\n")
		write(t, other, "other\n")
		look()
		expect("all files are read", Stats{Files: 2, ReadBytes: 21})

		rename(t, path, path+".2")
		expect("the file has another name", Stats{Files: 2, ReadBytes: 21})
		write(t, path, "whole\n"+strings.Repeat("x", 5000))
		expect("a new file is not open yet", Stats{Files: 2, ReadBytes: 21, LagBytes: 5006})
		look()
		expect("its line is unfinished", Stats{Files: 2, ReadBytes: 27, LagBytes: 5000})
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		write(t, path, "new\n")
		look()
		expect("the unfinished line is lost", Stats{Files: 2, ReadBytes: 31, LostBytes: 5000, Losses: 1})

		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
		expect("a file was removed, which nobody has seen", Stats{Files: 2, ReadBytes: 31, LostBytes: 5000, Losses: 1})
	})
}

func TestStatsTellTheAgeOfCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken, synced := int64(0), error(nil)
		w, err := newSaver(filepath.Join(t.TempDir(), "state"), nil, Options{
			Taken: func() int64 { return taken },
			Sync:  func() error { return synced },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.end()
		expect := func(what string, want Stats) {
			t.Helper()
			got := Stats{}
			w.count(&got)
			if d := cmp.Diff(got, want); d != "" {
				t.Errorf("%s (-got +want)\n%s", what, d)
			}
		}
		expect("nothing was printed", Stats{})
		w.put(savedSource{Path: "a", RealPath: "1"}, 10)
		time.Sleep(time.Second)
		w.put(savedSource{Path: "a", RealPath: "2"}, 20)
		time.Sleep(time.Second)
		w.save()
		expect("nothing was taken", Stats{CheckpointAge: 2 * time.Second})
		taken = 10
		w.save()
		expect("the first part was taken", Stats{CheckpointAge: time.Second, Checkpoints: 1})
		taken, synced = 20, errors.New("no space")
		w.rewrite = true
		w.save()
		time.Sleep(3 * time.Second)
		w.save()
		expect("two attempts failed", Stats{CheckpointAge: 3 * time.Second, Checkpoints: 1, CheckpointErrors: 2})
		synced = nil
		w.save()
		time.Sleep(time.Hour)
		expect("all is saved", Stats{Checkpoints: 2, CheckpointErrors: 2})
	})
}
