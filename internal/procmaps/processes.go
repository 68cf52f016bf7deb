//go:build linux

package procmaps

import (
	"context"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/filter"
)

// Bounds of the memory and time for maps.
const (
	maxProcesses = 256     // processes whose maps are read: each has an open folder of /proc
	maxEnded     = 256     // ended processes whose mappings are kept
	maxFiles     = 4096    // files whose headers are kept
	maxMapBytes  = 8 << 20 // bytes of the maps of a process: about 80,000 mappings

	// pause is the minimum time between two looks at all maps. The time is also at least
	// shareOfTime times the processor time of the previous look, 30 to 100 µs for each process.
	// A process that prints its stack in a handler may exist for only a millisecond more.
	pause       = time.Millisecond
	shareOfTime = 20

	firstLook = pause       // before the first look of Watch; each further pause is twice as long
	lastLook  = time.Second // longest pause

	// patience bounds how long output waits for a look. A look can take forever: a file of the
	// program may be on a network disk that does not answer.
	patience = 100 * time.Millisecond
)

// Processes tracks the mappings of a program and its descendants. The methods are safe for
// concurrent use.
type Processes struct {
	mu      sync.Mutex
	views   []view        // views of the last look
	cut     bool          // a limit kept some maps from being read
	last    time.Time     // end of the last look
	took    time.Duration // processor time of the last look
	begun   time.Time     // start of the current look
	under   chan struct{} // closed when the current look ends; nil between looks
	readers []*reader
	looker  looker // used only by the current look
}

// A view is the state of one process at a look. It does not change later.
type view struct {
	pid      int
	random   bool // the kernel chose the addresses at random
	foreign  bool // the process has another root folder, or another mount namespace
	mappings []mapping
}

// New returns Processes without a program.
func New() *Processes { return &Processes{looker: newLooker()} }

// Start sets the program, which has just started, and reads its maps. Call it once. If /proc
// belongs to another PID namespace, nothing is read: its PIDs mean other processes.
func (p *Processes) Start(pid int) {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return
	}
	p.looker.first = pid
	p.look()
}

// Watch reads the maps at growing intervals until ctx ends.
func (p *Processes) Watch(ctx context.Context) {
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			p.look()
		}
	}
}

// Reader returns a reader of the processes' output. It reads the maps of the processes after
// each read.
func (p *Processes) Reader(output io.Reader) io.Reader {
	r := &reader{Reader: output, of: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers = append(p.readers, r)
	return r
}

type reader struct {
	io.Reader
	of      *Processes
	reading atomic.Bool // the last output read was processed, or the output has ended
}

func (r *reader) Read(b []byte) (n int, err error) {
	r.reading.Store(true)
	if n, err = r.Reader.Read(b); n > 0 {
		r.of.look()
	}
	r.reading.Store(err != nil)
	return n, err
}

// look reads the maps unless they were read lately. It waits at most patience.
func (p *Processes) look() {
	p.mu.Lock()
	if p.under == nil {
		if time.Since(p.last) < max(pause, shareOfTime*p.took) {
			p.mu.Unlock()
			return
		}
		p.begun, p.under = time.Now(), make(chan struct{})
		allRead := true
		for _, r := range p.readers {
			allRead = allRead && r.reading.Load()
		}
		go p.lookNow(allRead)
	}
	under, left := p.under, patience-time.Since(p.begun)
	p.mu.Unlock()
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-under:
	case <-timer.C:
	}
}

// lookNow reads the maps. allRead is set if no output waits to be read.
func (p *Processes) lookNow(allRead bool) {
	views, took := p.looker.look(allRead)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.views, p.took, p.last, p.cut = views, took, time.Now(), p.looker.cut
	close(p.under)
	p.under = nil
}

// Cut reports whether maps were not read, since there were too many processes, threads,
// children or mappings.
func (p *Processes) Cut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// At returns the mapping of code at an address, if all mappings with the address agree.
func (p *Processes) At(addr uint64) (filter.ProcessMapping, bool) {
	m, of, found := p.find(addr)
	if !found {
		p.look()
		m, of, _ = p.find(addr)
	}
	if m == nil || m.file == nil {
		return filter.ProcessMapping{}, false
	}
	bias, ok := m.file.bias(m, pageSize)
	if !ok {
		return filter.ProcessMapping{}, false
	}
	f := m.file
	return filter.ProcessMapping{
		Start: m.start, End: m.end, Offset: m.offset, Base: bias + f.lowest, Bias: bias,
		Path: m.path, PID: of.pid, ID: f.id, File: f.info, Foreign: of.foreign,
		Predictable: f.fixed || !of.random || m.start < narrow,
	}, true
}

// find returns the mapping at an address, and its process. found is set if any process has a
// mapping there. m is nil if the mappings of processes differ.
func (p *Processes) find(addr uint64) (m *mapping, by *view, found bool) {
	p.mu.Lock()
	views := p.views
	p.mu.Unlock()
	for v := range views {
		of := &views[v]
		for i := range of.mappings {
			c := &of.mappings[i]
			switch {
			case addr < c.start || addr >= c.end:
			case !found:
				m, by, found = c, of, true
			case !c.agrees(m):
				return nil, nil, true
			case of.pid < by.pid:
				m, by = c, of
			}
		}
	}
	return m, by, found
}
