package follow

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// Stats are the numbers of a Follower at one moment. Totals count since [New].
type Stats struct {
	Files     int   // followed names with a current file
	ReadBytes int64 // bytes passed to sinks for printing

	// LagBytes is the number of bytes in the files that no sink has got yet, including unfinished
	// lines.
	LagBytes int64

	LostBytes int64 // total of Event.Lost
	Losses    int64 // reported losses, including losses of unknown size

	// CheckpointAge is the age of the oldest output that no checkpoint covers; 0 if checkpoints
	// cover all output. A slow reader increases it: output is checkpointed only after its reader
	// has taken it.
	CheckpointAge    time.Duration
	Checkpoints      int64 // number of checkpoints written
	CheckpointErrors int64 // failed attempts to write or sync a checkpoint
}

// Stats returns the current numbers. Any goroutine may call it at any time. It gets the size of
// each file from the system, and does not wait for sinks.
func (f *Follower) Stats() Stats {
	all := Stats{ReadBytes: f.totals.read.Load(), LostBytes: f.totals.lost.Load(), Losses: f.totals.losses.Load()}
	f.mu.Lock()
	places := make(map[string]progress, len(f.sources))
	for path, s := range f.sources {
		places[path] = s.lastProgress.get()
	}
	f.mu.Unlock()
	for path, p := range places {
		if p.exists {
			all.Files++
			all.LagBytes += p.lag(path)
		}
	}
	f.saver.count(&all)
	return all
}

type totals struct{ read, lost, losses atomic.Int64 }

type progress struct {
	exists bool
	rest   int64      // unread bytes of all files of the source but the newest
	newest lineage.ID // the file that the followed name led to
	off    int64      // read offset in the newest file
	size   int64      // size of the newest file at the last look
}

// lag returns the number of unread bytes of the source at path.
func (p progress) lag(path string) int64 {
	id, info, err := lookAt(path)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return p.rest + max(0, p.size-p.off)
	case id != p.newest: // a new file
		return p.rest + max(0, p.size-p.off) + info.Size()
	}
	return p.rest + max(0, info.Size()-p.off)
}

// A sharedProgress is the progress at the end of a source's last turn. It is safe for concurrent
// use.
type sharedProgress struct {
	mu sync.Mutex
	p  progress
}

func (s *sharedProgress) get() progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

func (s *sharedProgress) set(p progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p = p
}

// count sets the fields of a Stats that describe checkpoints.
func (w *saver) count(all *Stats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all.Checkpoints, all.CheckpointErrors = w.written, w.failures
	oldest := w.unsaved
	for _, list := range w.waiting {
		if len(list) > 0 && (oldest.IsZero() || list[0].since.Before(oldest)) {
			oldest = list[0].since
		}
	}
	if !oldest.IsZero() {
		all.CheckpointAge = time.Since(oldest)
	}
}
