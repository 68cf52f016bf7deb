package debuginfod

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// An askRate limits the rate of requests for new build IDs: a log may name millions of them. It is
// a token bucket of newBurst tokens that gains newPerSecond tokens in each second. All servers are
// asked at once, so one bucket bounds the rate for each server. It is safe for concurrent use.
type askRate struct {
	mu            sync.Mutex
	tokens        float64
	filled        time.Time // time of the last update of tokens; zero before the first ID
	known         map[buildid.ID]struct{}
	order         []buildid.ID // keys of known, oldest first; if full, a ring that begins at next
	next          int
	held          map[buildid.ID]struct{} // refused IDs that were not admitted later; at most maxHeld
	limitedCalled bool                    // Options.Limited was called
}

// admit reports whether the servers may be asked for id at the time now. The last newKnown admitted
// IDs are not new: requests for them take no token. first is set for the first refused ID.
func (r *askRate) admit(id buildid.ID, now time.Time) (ok, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.known[id]; ok {
		return true, false
	}
	if r.filled.IsZero() {
		r.tokens, r.filled = newBurst, now
		r.known, r.held = map[buildid.ID]struct{}{}, map[buildid.ID]struct{}{}
	}
	if d := now.Sub(r.filled); d > 0 {
		r.tokens, r.filled = min(newBurst, r.tokens+d.Seconds()*newPerSecond), now
	}
	if r.tokens < 1 {
		if len(r.held) < maxHeld {
			r.held[id] = struct{}{}
		}
		first = !r.limitedCalled
		r.limitedCalled = true
		return false, first
	}
	r.tokens--
	r.known[id] = struct{}{}
	delete(r.held, id)
	if len(r.order) < newKnown {
		r.order = append(r.order, id)
		return true, false
	}
	delete(r.known, r.order[r.next])
	r.order[r.next] = id
	r.next = (r.next + 1) % newKnown
	return true, false
}

// unasked returns the number of refused IDs, at most maxHeld.
func (r *askRate) unasked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held)
}

// errTooMany is the failure of servers that are not asked because too many IDs are new.
var errTooMany = &failure{reason: fmt.Sprintf("not asked yet: more than %d build IDs are new, and at most %d new IDs are requested per second", newBurst, newPerSecond), blameless: true}

// admit reports whether the contenders that are not final may be asked for id. If too many IDs are
// new, it makes these contenders fail with errTooMany.
func (c *Client) admit(id buildid.ID, all []*contender) bool {
	if !slices.ContainsFunc(all, func(e *contender) bool { return !e.final }) || c.admitID(id) {
		return true
	}
	for _, e := range all {
		if !e.final {
			e.fail(errTooMany)
		}
	}
	return false
}

// admitID reports whether the servers may be asked for id now. It calls Options.Limited for the
// first refused ID.
func (c *Client) admitID(id buildid.ID) bool {
	ok, first := c.rate.admit(id, time.Now())
	if first && c.o.Limited != nil {
		c.o.Limited(newBurst, newPerSecond)
	}
	return ok
}

// unasked returns the number of build IDs that no server was asked for, because too many were new.
// It counts at most maxHeld. An ID that is requested later no longer counts.
func (c *Client) unasked() int { return c.rate.unasked() }
