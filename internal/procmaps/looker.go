//go:build linux

package procmaps

import (
	"hash/maphash"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lingers is how long a mapping is kept after its process gave it up. Output that is not read
	// or resolved yet may have addresses in the mapping.
	lingers = 10 * time.Second

	// recheck is the minimum time between two checks for overwritten files.
	recheck = 100 * time.Millisecond
)

// A looker reads the maps of the processes, in one goroutine at a time.
type looker struct {
	first   int              // PID of the program; 0 before Start
	live    map[int]*process // live processes, by PID
	ended   []view           // last views of ended processes, oldest first
	files   map[fileKey]*file
	seed    maphash.Seed
	cut     bool // a limit kept some maps from being read
	last    time.Time
	checked time.Time // time of the last check for overwritten files

	// clock measures how long mappings linger. A look advances it by the time since the last look,
	// at most 2*lastLook, unless output waits to be read. Mappings thus outlast a long stop of this
	// process, and output that is not read.
	clock time.Duration
}

func newLooker() looker {
	return looker{live: make(map[int]*process), files: make(map[fileKey]*file), seed: maphash.MakeSeed()}
}

// look reads the maps of all processes. It returns the views of live and ended processes, and the
// processor time that it took. allRead is set if no output waits to be read.
func (l *looker) look(allRead bool) (views []view, took time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, now := threadTime(), time.Now()
	if allRead && !l.last.IsZero() {
		l.clock += min(now.Sub(l.last), 2*lastLook)
	}
	l.last = now
	l.findNew()
	var overwritten map[*file]bool
	if now.Sub(l.checked) >= recheck {
		l.checked = now
		overwritten = l.overwritten()
	}
	for pid, of := range l.live {
		if of.update(l, overwritten) {
			continue
		}
		of.folder.Close()
		delete(l.live, pid)
		if len(of.mappings) > 0 {
			l.ended = append(l.ended, of.view)
		}
	}
	l.shareFiles()
	if n := len(l.ended) - maxEnded; n > 0 {
		l.ended = append(l.ended[:0:0], l.ended[n:]...)
	}
	for _, of := range l.live {
		views = append(views, of.view)
	}
	return append(views, l.ended...), threadTime() - start
}

// threadTime returns the processor time of the current thread.
func threadTime() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// findNew adds the program and its descendants. A known process is kept if its parent ends.
func (l *looker) findNew() {
	if l.first == 0 {
		return // not started
	}
	queue := []int{l.first}
	for pid := range l.live {
		if pid != l.first {
			queue = append(queue, pid)
		}
	}
	asked := make(map[int]bool)
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		if asked[pid] {
			continue
		}
		if len(asked) > 2*maxProcesses {
			l.cut = true
			return
		}
		asked[pid] = true
		of := l.live[pid]
		if of == nil {
			if len(l.live) >= maxProcesses {
				l.cut = true
				continue
			}
			if of = openProcess(pid); of == nil {
				continue
			}
			l.live[pid] = of
		}
		children, cut := of.children()
		queue, l.cut = append(queue, children...), l.cut || cut
	}
}

// shareFiles sets the missing file of a mapping if another process has mapped the same file. A file
// cannot be opened, for example, if a worker was forked after its program was replaced on disk.
func (l *looker) shareFiles() {
	type inode struct{ dev, number uint64 }
	known := make(map[inode]*file)
	missing := false
	for _, of := range l.live {
		for i := range of.mappings {
			switch m := &of.mappings[i]; {
			case m.gone != 0 || m.path == "":
			case m.file == nil:
				missing = true
			default:
				known[inode{m.dev, m.inode}] = m.file
			}
		}
	}
	if !missing {
		return
	}
	for _, of := range l.live {
		of.adopt(func(m *mapping) *file { return known[inode{m.dev, m.inode}] })
	}
}

// overwritten reports for each mapped file whether its contents have changed since they were read.
// Processes that have mapped such a file then have the new contents, too.
func (l *looker) overwritten() map[*file]bool {
	changed := make(map[*file]bool)
	for _, of := range l.live {
		for i := range of.mappings {
			m := &of.mappings[i]
			if m.file == nil || m.gone != 0 {
				continue
			}
			if _, known := changed[m.file]; !known {
				changed[m.file] = m.file.isOverwritten(of.places(m)[0])
			}
		}
	}
	return changed
}
