//go:build linux

package procmaps

import (
	"context"
	"io"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/filter"
)

// Bounds of the memory and the time for maps.
const (
	maxProcesses = 256     // processes whose maps are read: each has an open folder of /proc
	maxEnded     = 256     // ended processes whose mappings are kept
	maxFiles     = 4096    // files whose headers are kept
	maxMapBytes  = 8 << 20 // bytes of the maps of a process: some 80,000 mappings

	// Between two reads of all maps passes at least this time, and shareOfTime as long as the first
	// of them took on a processor: 30 to 100 µs for each process. A process that prints its stack in
	// a handler may exist for a millisecond more.
	pause       = time.Millisecond
	shareOfTime = 20

	firstLook = pause       // after the start; each further pause is twice as long
	lastLook  = time.Second // up to this one

	// lingers is how long a mapping that a process has given up stays in doubt: an address in it may
	// be in lines that were not read or judged yet.
	lingers = 10 * time.Second
)

// Processes are a program and its descendants. Its methods are safe for concurrent use.
type Processes struct {
	mu    sync.Mutex
	first int              // number of the program
	live  map[int]*process // by number
	ended []*process       // oldest first
	files map[fileKey]*file
	last  time.Time     // end of the last read
	took  time.Duration // time that it took on a processor
}

// New returns Processes without a process.
func New() *Processes {
	return &Processes{live: make(map[int]*process), files: make(map[fileKey]*file)}
}

// Start sets the program, which has just started, and reads its maps.
func (p *Processes) Start(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = pid
	p.read()
}

// Watch reads the maps now and then until ctx ends.
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

// Reader returns a reader of the output of the processes. It reads their maps when it has read text.
func (p *Processes) Reader(output io.Reader) io.Reader { return &reader{output, p} }

type reader struct {
	io.Reader
	of *Processes
}

func (r *reader) Read(b []byte) (n int, err error) {
	if n, err = r.Reader.Read(b); n > 0 {
		r.of.look()
	}
	return n, err
}

// look reads the maps unless that was done lately.
func (p *Processes) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lookLocked()
}

func (p *Processes) lookLocked() {
	if time.Since(p.last) >= max(pause, shareOfTime*p.took) {
		p.read()
	}
}

// read reads the maps of all processes.
func (p *Processes) read() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, now := threadTime(), time.Now()
	p.findNew()
	for pid, of := range p.live {
		if of.update(p, now) {
			continue
		}
		of.folder.Close()
		delete(p.live, pid)
		if len(of.mappings) > 0 {
			p.ended = append(p.ended, of)
		}
	}
	if n := len(p.ended) - maxEnded; n > 0 {
		p.ended = append(p.ended[:0], p.ended[n:]...)
	}
	p.last, p.took = time.Now(), threadTime()-start
}

// threadTime returns the time that the current thread has had a processor.
func threadTime() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// findNew adds the program and its descendants. A process that was found is kept if its parent ends.
func (p *Processes) findNew() {
	queue := []int{p.first}
	for pid := range p.live {
		if pid != p.first {
			queue = append(queue, pid)
		}
	}
	asked := make(map[int]bool)
	for len(queue) > 0 && len(asked) <= 2*maxProcesses {
		pid := queue[0]
		queue = queue[1:]
		if asked[pid] {
			continue
		}
		asked[pid] = true
		of := p.live[pid]
		if of == nil && len(p.live) < maxProcesses {
			if of = openProcess(pid); of != nil {
				p.live[pid] = of
			}
		}
		if of != nil {
			queue = append(queue, of.children()...)
		}
	}
}

// At returns the mapping of code at an address, if it is certain.
func (p *Processes) At(addr uint64) (filter.ProcessMapping, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, of, found := p.find(addr)
	if !found {
		p.lookLocked()
		m, of, _ = p.find(addr)
	}
	if m == nil || m.file == nil {
		return filter.ProcessMapping{}, false
	}
	bias, ok := m.file.bias(m)
	if !ok {
		return filter.ProcessMapping{}, false
	}
	f := m.file
	return filter.ProcessMapping{
		Start: m.start, End: m.end, Offset: m.offset, Base: bias + f.lowest, Bias: bias,
		Path: m.path, PID: of.pid, ID: f.id, File: f.info,
		Predictable: f.fixed || !of.random || m.start < narrow,
	}, true
}

// find returns the mapping at an address, and the process that has it. found is set if some process
// has one; m is nil if they differ.
func (p *Processes) find(addr uint64) (m *mapping, by *process, found bool) {
	agree := true
	look := func(of *process) {
		for i := range of.mappings {
			c := &of.mappings[i]
			switch {
			case addr < c.start || addr >= c.end:
			case !found:
				m, by, found = c, of, true
			case !c.agrees(m):
				agree = false
			case of.pid < by.pid:
				m, by = c, of
			}
		}
	}
	for _, of := range p.live {
		look(of)
	}
	for _, of := range p.ended {
		look(of)
	}
	if !agree {
		return nil, nil, true
	}
	return m, by, found
}
