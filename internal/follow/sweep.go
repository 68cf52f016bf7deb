package follow

import (
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// A check finds out whether the file at path has changed since s last read its state. id, size and
// mtime are from that state.
type check struct {
	s       *source
	path    string
	id      lineage.ID
	size    int64
	mtime   time.Time // when the file last changed
	at      time.Time // time of the comparison
	changed bool
}

// isIdle reports whether a turn of s would do nothing if its file is unchanged.
func (s *source) isIdle() bool {
	g := s.cur
	return g != nil && g.contents == nil && g.look == g.size && len(s.old) == 0 && len(s.ahead) == 0 &&
		!s.attention && !s.arrivals.silentFS && !s.search.pending && s.lastMessage == "" &&
		s.arrivals.isEven() && !s.f.disk.crowded()
}

// sweep starts turns of the sources that are not idle. If all is set, a goroutine compares the
// files of idle sources, at a third of the cost of turns. The comparison finds changes without an
// event, such as writes to mapped memory.
func (r *run) sweep(all bool) {
	if all && r.sweeping { // a file system has not answered since the last sweep
		r.readyAll()
		return
	}
	var checks []check
	for _, s := range r.sources {
		if s.schedule.running || s.schedule.queued || !s.isIdle() {
			r.ready(s)
			continue
		}
		if all {
			checks = append(checks, check{s: s, path: s.path, id: s.cur.id, size: s.cur.size, mtime: s.cur.mtime})
		}
	}
	if len(checks) == 0 {
		return
	}
	r.sweeping = true
	r.background.Go(func() {
		for i := range checks {
			if r.ctx.Err() != nil {
				break
			}
			checks[i].compare()
		}
		r.swept <- checks
	})
}

func (c *check) compare() {
	c.at = time.Now()
	id, info, err := lookAt(c.path)
	c.changed = err != nil || id != c.id || !info.Mode().IsRegular() || info.Size() != c.size || !info.ModTime().Equal(c.mtime)
}

// sweptAll starts turns of the sources whose files have changed.
func (r *run) sweptAll(checks []check) {
	r.sweeping = false
	for _, c := range checks {
		switch {
		case c.changed:
			r.ready(c.s)
		case !c.s.schedule.running && c.at.After(c.s.read):
			c.s.read = c.at
		}
	}
}
