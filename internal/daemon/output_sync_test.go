package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The next checkpoint must get the error of an earlier sync. The system reports such an error only
// once, and later syncs succeed, although lines may be lost.
func TestCheckpointsLearnOfFailedSyncs(t *testing.T) {
	for name, fails := range map[string]func(t *testing.T, o *fileOutput, path string){
		"after a second": func(*testing.T, *fileOutput, string) { time.Sleep(2 * syncEvery) },
		"of a rotated file": func(t *testing.T, o *fileOutput, path string) {
			if err := os.Rename(path, path+".1"); err != nil {
				t.Fatal(err)
			}
			o.reopen()
		},
		"at the checkpoint": func(t *testing.T, o *fileOutput, _ string) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				o := openedFile(t, Output{File: "DIR/out", Sync: "second"}, dir)
				failures := 1
				o.fsync = func(f *os.File) error {
					if failures--; failures >= 0 {
						return syscall.EIO
					}
					return f.Sync()
				}
				put(t, o, new(session), "one\n")
				fails(t, o, filepath.Join(dir, "out"))
				if err := o.sync(); !errors.Is(err, syscall.EIO) {
					t.Errorf("the checkpoint gets %v", err)
				}
				put(t, o, new(session), "two\n")
				if err := o.sync(); err != nil {
					t.Errorf("the next checkpoint gets %v", err)
				}
			})
		})
	}
}

// With sync: always, a write must return only after a successful sync. After a failed sync, the
// line must be written again.
func TestLinesAreTakenWhenTheyAreSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		o := openedFile(t, Output{File: "DIR/out", Sync: "always"}, dir)
		var mended atomic.Bool
		o.fsync = func(f *os.File) error {
			if !mended.Load() {
				return syscall.EIO
			}
			return f.Sync()
		}
		taken := make(chan struct{})
		go func() { put(t, o, new(session), "one\n"); close(taken) }()
		time.Sleep(retryFirst + retryFirst/2)
		select {
		case <-taken:
			t.Error("a line is taken that was not synced")
		default:
		}
		if failed, err := o.attempts(); failed != 2 || !errors.Is(err, syscall.EIO) {
			t.Errorf("%d failures, %v", failed, err)
		}
		mended.Store(true)
		<-taken
		if diff := cmp.Diff(map[string]string{"out": "one\none\none\n"}, contents(t, dir)); diff != "" {
			t.Error(diff)
		}
	})
}
