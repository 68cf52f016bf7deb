package daemon

import (
	"container/list"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/symfilter/symfilter/internal/seldom"
)

// senderShare divides limits.contexts: the senders of one input may use half. UDP addresses can be
// forged: without this limit, forged senders could use up the contexts of all other inputs.
const senderShare = 2

// A datagrams reads lines from a UDP or unixgram socket. The last line of a datagram needs no line
// end. Each sender has one session. A sender is an IP address, the path of a socket, or a uid.
type datagrams struct {
	p       *pipeline
	packets []*packets

	dropped, failed, cut, unwritten seldom.Limiter

	lost int64 // lost datagrams since the last message; guarded by mu

	mu      sync.Mutex
	senders map[string]*sender
	order   list.List // *sender values, longest idle first
}

type sender struct {
	name    string
	session *session
	used    time.Time
	place   *list.Element
}

func openDatagrams(p *pipeline, c Input) (runner, error) {
	if p.stage.Load().out == nil { // for systemd:NAME, Parse does not see the type of the socket
		return nil, errors.New("output.peer: a sender of datagrams reads no answer: set another output")
	}
	all, err := p.house.ports.packets(c.Listen, admission{tls: c.TLS, allowRemote: c.AllowRemote, mode: c.Mode})
	if err != nil {
		return nil, err
	}
	return &datagrams{p: p, packets: all, senders: make(map[string]*sender)}, nil
}

func (d *datagrams) close() error {
	for _, s := range d.packets {
		s.Close()
	}
	return nil
}

func (d *datagrams) run(ctx context.Context) error {
	if err := d.p.memory.open(contextsPath(d.p.state)); err != nil {
		d.p.log.Error("cannot save the contexts of senders", "error", err)
	}
	defer d.p.memory.close()
	ended := make(chan struct{})
	var background, readers sync.WaitGroup
	background.Go(func() { d.p.memory.saveUntil(ended) })
	background.Go(func() { d.restUntil(ended) })
	for _, s := range d.packets {
		readers.Go(func() { d.read(ctx, s) })
	}
	<-ctx.Done()
	d.close()
	readers.Wait()
	close(ended)
	background.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.order.Len() > 0 {
		d.end(d.order.Front().Value.(*sender))
	}
	return nil
}

func (d *datagrams) read(ctx context.Context, from *packets) {
	buf, control := make([]byte, block, block+1), make([]byte, controlSize)
	for ctx.Err() == nil {
		g, err := from.receive(buf, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if n, ok := d.failed.May(time.Now()); ok {
				d.p.log.Error("a datagram cannot be received; continuing with the next one", "error", err, "times", n)
			}
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		if g.lost > 0 {
			d.lose(int64(g.lost))
		}
		if g.cut {
			if n, ok := d.cut.May(time.Now()); ok {
				d.p.log.Warn("a datagram was too long, and was cut", "peer", g.from, "bytes", g.n, "times", n)
			}
		}
		if g.n == 0 {
			continue
		}
		lines := buf[:g.n]
		if lines[g.n-1] != '\n' {
			lines = append(lines, '\n')
		}
		if err := d.give(g.from, lines); err != nil {
			if n, ok := d.unwritten.May(time.Now()); ok {
				d.p.log.Error("lines of a sender are not written", "peer", g.from, "error", err, "times", n)
			}
		}
	}
}

// lose counts datagrams that the kernel dropped because they arrived faster than they were read.
func (d *datagrams) lose(n int64) {
	d.p.counts.inLostDatagrams.Add(n)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost += n
	if _, ok := d.dropped.May(time.Now()); ok {
		d.p.log.Warn("the kernel has dropped datagrams: they arrived faster than the output accepted them; raise net.core.rmem_max, or use tcp:", "datagrams", d.lost)
		d.lost = 0
	}
}

// give filters the lines of a datagram. An error ends the sender's session. The sender's next
// datagram begins another session.
func (d *datagrams) give(from string, lines []byte) error {
	d.mu.Lock()
	if from == "" {
		from = "unknown"
	}
	s := d.senders[from]
	if s == nil {
		s = &sender{name: from, session: d.p.memory.enter(from, nil, true)}
		s.place = d.order.PushBack(s)
		d.senders[from] = s
		most := max(1, d.p.house.limits.Load().Contexts/senderShare)
		for len(d.senders) > most {
			d.end(d.order.Front().Value.(*sender))
		}
	} else {
		d.order.MoveToBack(s.place)
	}
	s.used = time.Now()
	session := s.session
	d.mu.Unlock()
	_, err := session.Write(lines)
	if errors.Is(err, errEnded) { // another goroutine has ended the idle session
		return d.give(from, lines)
	}
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.senders[from] == s {
			d.end(s)
		}
	}
	return err
}

// end ends the session of a sender, and stores its context. d.mu is held.
func (d *datagrams) end(s *sender) {
	d.order.Remove(s.place)
	delete(d.senders, s.name)
	if err := d.p.memory.leave(s.session); err != nil {
		d.p.log.Error("the last lines of a sender are not written", "peer", s.name, "error", err)
	}
}

// restUntil ends sessions that are idle for twice parkAfter, until done is closed. So forged
// addresses do not occupy memory for long. Stored contexts expire like the contexts of connections.
func (d *datagrams) restUntil(done <-chan struct{}) {
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			d.rest(now)
		}
	}
}

func (d *datagrams) rest(now time.Time) {
	for d.endIdle(now.Add(-2 * parkAfter)) {
	}
}

// endIdle ends the session of the longest idle sender, if it has been idle since the given time. It
// ends at most one session, since d.mu blocks reading: ending thousands of sessions takes seconds.
func (d *datagrams) endIdle(since time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	oldest := d.order.Front()
	if oldest == nil || oldest.Value.(*sender).used.After(since) {
		return false
	}
	d.end(oldest.Value.(*sender))
	return true
}
