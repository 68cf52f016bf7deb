package follow

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// An arrivals counts the files that got the followed name, according to creation events, and the
// files that were opened. If the first number is larger, some files were gone before they could be
// opened.
type arrivals struct {
	places   []place // to watch for changes
	silentFS bool    // no events arrive from the folder of the followed name

	// files that got the followed name since restart, according to creation events
	created atomic.Int64
	// file that has the followed name, according to these events; guarded by the watcher's mutex
	named named
	taken int64 // opened files that are included in created
	// unopened file that had the followed name before the count began; zero: none
	uncounted lineage.ID
	noticed   time.Time // first time at which created differed from taken
	changed   time.Time // time of the last new file
}

// restart begins the count for the places. id is the file that has the followed name now, and
// opened reports whether it is open. The watcher's mutex is held.
func (a *arrivals) restart(places []place, id lineage.ID, opened bool) {
	a.places = places
	a.created.Store(0)
	a.taken, a.uncounted, a.named = 0, lineage.ID{}, named{id: id, first: id}
	if !opened {
		a.uncounted = id
	}
}

func (a *arrivals) take(id lineage.ID) {
	if id == a.uncounted {
		a.uncounted = lineage.ID{} // only once: a later file may have the same inode
	} else {
		a.taken++
	}
}

func (a *arrivals) missed() int64 { return a.created.Load() - a.taken }

func (a *arrivals) isEven() bool { return a.noticed.IsZero() && a.missed() == 0 }

// hurries reports whether new files appear quickly and no events announce them.
func (a *arrivals) hurries() bool { return a.silentFS && time.Since(a.changed) < hurryTime }

// countMissed reports the number of files that lost the followed name before they could be opened.
// It first waits for eventDelay, since a file may be opened before its event arrives, or after it.
func (s *source) countMissed() {
	a := &s.arrivals
	missed := a.missed()
	if missed > 0 && s.isUnopened(s.path) {
		missed--
	}
	switch {
	case missed == 0 || len(s.ahead) > 0 || s.search.pending:
		a.noticed = time.Time{}
	case a.noticed.IsZero():
		a.noticed = time.Now()
		s.attention = true
	case time.Since(a.noticed) < eventDelay:
		s.attention = true
	default:
		a.taken += missed
		a.noticed = time.Time{}
		switch {
		case missed <= 0 || s.out == nil:
		case missed == 1:
			s.lose(Event{Message: "a file with this name was gone before it could be opened; its lines are lost"})
		default:
			s.lose(Event{Message: fmt.Sprintf("%d files with this name were gone before they could be opened; their lines are lost", missed)})
		}
	}
}

func (s *source) hurries() bool { return s.out != nil && s.arrivals.hurries() }
