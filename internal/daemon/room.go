package daemon

import (
	"container/list"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

const (
	// bound on the HTTP connections beyond the limit that wait for their refusal
	refusedAtOnce = 64

	// slowAfter is how long an HTTP connection may lack a complete request header before another
	// connection may take its seat.
	slowAfter = time.Second
)

// A room bounds the connections of listeners. A peer has at most three quarters of the seats, and
// so cannot shut out other peers. If no seat is free, a new HTTP connection replaces the HTTP
// connection that has had no request for longest, if that is at least slowAfter.
type room struct {
	most func() int

	mu      sync.Mutex
	used    int
	peers   map[string]int
	waiting list.List // HTTP seats without a request, longest first
	refused list.List // HTTP seats beyond the limit, oldest first
}

// A seat is the place of a connection in a room. The room does not count a refused seat, which is
// beyond the limit.
type seat struct {
	room    *room
	peer    string // a result of peerName
	conn    net.Conn
	refused bool // the seat is beyond the limit, and its requests are refused

	// guarded by room.mu
	requests int           // in progress
	since    time.Time     // start of the time without a request
	place    *list.Element // place in waiting or refused; nil: in neither
	left     bool
}

// ofPeer returns the maximum number of seats of one peer in a room with the given number of seats.
func ofPeer(most int) int { return most - most/4 }

// enter takes a seat for a connection other than HTTP. It returns nil if no seat is free for the
// peer.
func (r *room) enter(peer string) *seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &seat{room: r, peer: peer}
	if most := r.most(); r.used >= most || r.peers[peer] >= ofPeer(most) {
		return nil
	}
	r.sit(s)
	return s
}

// take returns a seat for an HTTP connection. If no seat is free for the peer, take closes the
// slowest connection, and gives its seat to the new connection: see slowest. If no connection is
// slow, the returned seat has refused set. If too many refused connections are open, take closes
// the oldest of them.
func (r *room) take(c net.Conn, peer string) *seat {
	s := &seat{room: r, peer: peer, conn: c, since: time.Now()}
	r.mu.Lock()
	gone := r.admit(s)
	r.mu.Unlock()
	if gone != nil {
		closeNow(gone.conn)
	}
	return s
}

// admit gives s a seat, or refuses it. It returns the seat of a connection to close, or nil.
func (r *room) admit(s *seat) (gone *seat) {
	most := r.most()
	full, many := r.used >= most, r.peers[s.peer] >= ofPeer(most)
	if full || many {
		if gone = r.slowest(s, many); gone == nil {
			s.refused = true
			if r.refused.Len() >= refusedAtOnce {
				gone = r.refused.Front().Value.(*seat)
				r.leave(gone)
			}
			s.place = r.refused.PushBack(s)
			return gone
		}
		r.leave(gone)
	}
	r.sit(s)
	s.place = r.waiting.PushBack(s)
	return gone
}

func (r *room) sit(s *seat) {
	if r.peers == nil {
		r.peers = make(map[string]int)
	}
	r.used++
	r.peers[s.peer]++
}

// slowest returns the HTTP seat that has been without a request for longest. It returns nil if that
// time is less than slowAfter. If own is set, it considers only seats of the same peer as s.
func (r *room) slowest(s *seat, own bool) *seat {
	for e := r.waiting.Front(); e != nil; e = e.Next() {
		other := e.Value.(*seat)
		if s.since.Sub(other.since) < slowAfter {
			return nil
		}
		if !own || other.peer == s.peer {
			return other
		}
	}
	return nil
}

// leave removes a seat from the counts. r.mu is held.
func (r *room) leave(s *seat) {
	if s.left {
		return
	}
	s.left = true
	if s.refused {
		r.refused.Remove(s.place)
		return
	}
	if s.place != nil {
		r.waiting.Remove(s.place)
	}
	r.used--
	if r.peers[s.peer]--; r.peers[s.peer] == 0 {
		delete(r.peers, s.peer)
	}
}

func (s *seat) leave() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.leave(s)
}

// begin begins a request. It returns false if another connection has taken the seat. Then s.conn is
// being closed.
func (s *seat) begin() bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.requests++; s.place != nil && !s.refused && !s.left {
		s.room.waiting.Remove(s.place)
		s.place = nil
	}
	return !s.left
}

func (s *seat) end() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.requests--; s.requests == 0 && !s.refused && !s.left {
		s.since = time.Now()
		s.place = s.room.waiting.PushBack(s)
	}
}

// closeNow closes a connection without closing its TLS, which would wait for a peer that does not
// read.
func closeNow(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	c.Close()
}
