package daemon

import (
	"container/list"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/internal/contextfile"
	"github.com/symfilter/symfilter/internal/seldom"
)

const (
	maxPeerName = 128         // bytes; a longer name is cut
	leaveWait   = time.Second // wait of a new connection for the end of the previous connection
	saveEvery   = time.Second // shortest time between two saves
)

// A memory keeps the contexts of a pipeline's peers for their next connections: a device need not
// log its modules again. A peer with several connections at once has no kept context, since a later
// connection may continue any of them. With a key, a peer's connections share one context, in which
// the key separates the processes. Saves include the contexts of open connections. A memory is safe
// for concurrent use.
type memory struct {
	p       *pipeline
	changed atomic.Bool // changed since the last save

	peers map[string]*peer // guarded by contexts.mu

	failed seldom.Limiter
	path   atomic.Pointer[string] // path of the file; nil or empty: no file
	saving sync.Mutex
	file   *contextfile.File
}

// name returns the path of the file, or "" without a file.
func (m *memory) name() string {
	if path := m.path.Load(); path != nil {
		return *path
	}
	return ""
}

// A peer is a sender of lines, with its context. contexts.mu guards its fields.
type peer struct {
	memory  *memory
	name    string
	open    int
	several bool     // several sessions were open at once; reset once no connection is open
	session *session // the only open session; nil without a session, or if several are open
	// closed when the ending session has ended; nil if none is ending
	leaving chan struct{}

	kept  []byte // context while no connection is open
	used  time.Time
	place *list.Element
}

// enter returns the session for a new connection, which leave must release. If shared is set, all
// of the peer's connections use one session.
func (m *memory) enter(name string, own io.Writer, shared bool) *session {
	c := m.p.house.contexts
	name = name[:min(len(name), maxPeerName)]
	c.mu.Lock()
	defer c.mu.Unlock()
	q := m.peers[name]
	if q != nil && q.leaving != nil {
		leaving := q.leaving
		c.mu.Unlock()
		select {
		case <-leaving:
		case <-time.After(leaveWait):
		}
		c.mu.Lock()
		q = m.peers[name]
	}
	if q == nil {
		q = &peer{memory: m, name: name}
		m.peers[name] = q
	}
	q.open++
	if shared && q.session != nil && q.leaving == nil {
		return q.session
	}
	s := m.p.session(name, own)
	s.memory, s.plain, s.ownIfPeer = m, true, own != nil
	switch {
	case q.open == 1 || shared:
		q.session, s.past = s, c.take(q)
	default:
		q.several, q.session = true, nil
	}
	return s
}

// leave ends one use of a session. The last use prints the held lines, and keeps the context.
func (m *memory) leave(s *session) error {
	c := m.p.house.contexts
	c.mu.Lock()
	q := m.peers[s.peer]
	if q.session == s && q.open > 1 { // shared
		q.open--
		c.mu.Unlock()
		return nil
	}
	only := q.session == s
	left := make(chan struct{})
	if only {
		q.leaving = left
	}
	c.mu.Unlock()
	context, err := s.depart()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(left)
	if q.open--; only {
		q.leaving = nil
	}
	if q.session == s {
		q.session = nil
		if len(context) > 0 && !q.several && q.open == 0 {
			c.keep(q, context, s.used)
		}
	}
	m.changed.Store(true)
	m.tidy(q)
	return err
}

// tidy forgets q if it has neither a connection nor a kept context. contexts.mu is held.
func (m *memory) tidy(q *peer) {
	if q.open > 0 {
		return
	}
	if q.several = false; q.place == nil && m.peers[q.name] == q {
		delete(m.peers, q.name)
	}
}

// forget drops all contexts of a removed pipeline. It changes no file.
func (m *memory) forget() {
	c := m.p.house.contexts
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range m.peers {
		c.take(q)
	}
	clear(m.peers)
}

// A savedPeer is a peer's context in the file of contexts.
type savedPeer struct {
	Peer    checkpoint.Text `json:"peer"`
	Used    int64           `json:"used"` // Unix seconds
	Context json.RawMessage `json:"context"`
}

type savedPeers struct {
	Version int                        `json:"v"`
	Peers   checkpoint.List[savedPeer] `json:"peers"`
}

// open makes the folder of path, opens the file, and reads its contexts. An empty path means no
// file.
func (m *memory) open(path string) error {
	m.close()
	m.saving.Lock()
	defer m.saving.Unlock()
	if m.path.Store(&path); path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, content, unusable, err := contextfile.Open(path)
	if err != nil {
		return err
	}
	m.file = file
	if unusable != nil {
		m.p.log.Warn("cannot use the saved contexts: modules and maps of earlier streams are lost", "file", path, "error", unusable)
	}
	if len(content) == 0 {
		return nil
	}
	if err := m.restore(content); err != nil {
		m.p.log.Warn("cannot use the saved contexts: modules and maps of earlier streams are lost", "file", path, "error", err)
	}
	return nil
}

// restore adds the contexts in the content of a file. It skips peers that the memory already has.
func (m *memory) restore(content []byte) error {
	var s savedPeers
	if err := checkpoint.Decode(content, &s); err != nil {
		return err
	}
	for _, q := range s.Peers {
		if len(q.Peer) == 0 || len(q.Peer) > maxPeerName || len(q.Context) == 0 {
			return checkpoint.Damaged("peer %.20q has no valid name or no context", string(q.Peer))
		}
	}
	c := m.p.house.contexts
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, saved := range s.Peers {
		name, used := string(saved.Peer), time.Unix(saved.Used, 0)
		if m.peers[name] != nil {
			continue
		}
		if used.After(now) { // the clock was set back
			used = now
		}
		q := &peer{memory: m, name: name}
		m.peers[name] = q
		c.keep(q, saved.Context, used)
		m.tidy(q)
	}
	return nil
}

// save replaces the file if the contexts have changed.
func (m *memory) save() error {
	m.saving.Lock()
	defer m.saving.Unlock()
	return m.saveLocked()
}

func (m *memory) saveLocked() error {
	if m.file == nil || !m.changed.Swap(false) {
		return nil
	}
	type known struct {
		savedPeer
		session *session
	}
	var all []known
	c := m.p.house.contexts
	c.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(m.peers)) {
		q := m.peers[name]
		all = append(all, known{savedPeer{checkpoint.Text(name), q.used.Unix(), q.kept}, q.session})
	}
	c.mu.Unlock()
	s := savedPeers{Version: checkpoint.Version, Peers: []savedPeer{}}
	for _, q := range all {
		if q.session != nil {
			var used time.Time
			if q.Context, used = q.session.saved(); !used.IsZero() {
				q.Used = used.Unix()
			}
		}
		if len(q.Context) > 0 {
			s.Peers = append(s.Peers, q.savedPeer)
		}
	}
	if err := m.file.Save(checkpoint.Append(nil, s)); err != nil {
		m.changed.Store(true)
		return err
	}
	return nil
}

// saveUntil saves changed contexts every second, until done is closed. After a save that takes
// longer than 50 ms, it pauses 20 times as long as the save took.
func (m *memory) saveUntil(done <-chan struct{}) {
	var told seldom.Limiter
	for pause := saveEvery; ; {
		select {
		case <-done:
			return
		case <-time.After(pause):
		}
		begin := time.Now()
		if err := m.save(); err != nil {
			if n, ok := told.May(time.Now()); ok {
				m.p.log.Error("cannot save the contexts of peers; retrying", "file", m.name(), "error", err, "times", n)
			}
		}
		pause = max(saveEvery, 20*time.Since(begin))
	}
}

func (m *memory) close() {
	m.saving.Lock()
	defer m.saving.Unlock()
	if m.file == nil {
		return
	}
	if err := m.saveLocked(); err != nil {
		m.p.log.Error("cannot save the contexts of peers", "file", m.name(), "error", err)
	}
	m.file.Close()
	m.file = nil
}

func contextsPath(state string) string {
	if state == "" {
		return ""
	}
	return fmt.Sprintf("%s.contexts", state)
}
