package filter

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

// A process is the context of one process whose lines are in the stream.
type process struct {
	key  string
	used uint64 // processes.turn at the process's last line
	Context
}

// processes holds the contexts of a stream's processes, within its limits.
type processes struct {
	process *process            // process of the current line
	all     map[string]*process // by key; nil while the stream has only one process
	turn    uint64              // number of lines so far; counted only with a process key
	began   int                 // weight of the current process when it became current
	// weight that all processes have gained since the last call of evict
	grown      int
	openDicts  int // number of processes with an open hexdict
	limits     Limits
	evictions  int64                    // processes dropped by evict
	keyedLines int64                    // lines with a key
	evicted    func(key, reason string) // Options.Evicted
	entered    bool                     // the caller names each line's process: see inner.Enter
}

// weight returns the size of p in units of weightBytes.
func (p *process) weight() int {
	n := p.space.weight()
	if p.facts != nil {
		n += p.facts.Size() / weightBytes
	}
	return n
}

func (f *lineFilter) setProcess(p *process) {
	f.process, f.processKey = p, p.key
	f.space = &p.space
	changed := f.changed
	f.forgetRecent()
	f.changed = changed // forgetRecent sets f.changed, although no process has changed
}

// Limits of the processes of one stream. The markup format requires a context for each process.
const (
	maxProcesses = 1024 // contexts; beyond this number, the longest idle contexts are dropped
	// bytes of all contexts except the current one; checked each time they have grown by a quarter
	// of this limit
	maxHeld     = 64 << 20
	weightBytes = 64  // bytes in a unit of weight
	maxKey      = 256 // bytes used of a key
)

// Limits bound the contexts of a stream with several processes. Beyond a limit, the longest idle
// processes are dropped, down to three quarters of the limit. Frames of a dropped process have no
// module until the log defines its modules again.
type Limits struct {
	Processes    int   // number of contexts, including the context of lines without a key; 0: 1,024
	ContextBytes int64 // approximate bytes of all contexts except the current one; 0: 64 MiB
}

// Reasons for calls of Options.Evicted.
const (
	evictedForNumber = "processes" // more than Limits.Processes
	evictedForSize   = "bytes"     // more than Limits.ContextBytes
)

// orDefault returns l with default values in its unset fields.
func (l Limits) orDefault() Limits {
	if l.Processes <= 0 {
		l.Processes = maxProcesses
	}
	if l.ContextBytes <= 0 {
		l.ContextBytes = maxHeld
	}
	return l
}

func (l Limits) weight() int { return int(l.ContextBytes / weightBytes) }

// processKeys are the presets of [ProcessKey].
var processKeys = sync.OnceValue(func() map[string]string {
	return map[string]string{
		// [00135.795][1727][2405][klog] INFO: …, [12.345] 01727.02405> …,
		// [2026-11-20 10:00:00][1727][2405][tag] …
		"fuchsia": `^\s*\[[-0-9 :.]+\]\s*\[?(\d+)[].:]`,
		// 12-20 00:03:53.008 11002 11003 F DEBUG   : …, F/DEBUG (11002): …
		"logcat": `^\s*(?:(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d\.\d+\s+(?:[a-z]\S*\s+)?(\d+)\s+\d+\s+[VDIWEFS]\s|[VDIWEFS]/[^(]*\(\s*(\d+)\):)`,
		// Nov 20 10:00:00 host app[1727]: …, <34>1 2026-11-20T10:00:00Z host app 1727 …
		"syslog": `^(?:<\d+>1 \S+ \S+ (\S+ \d+) |[^\[]*?(\S+\[\d+\]): ?)`,
	}
})

// ProcessKey returns the expression for [Options.ProcessKey]: a preset if s is fuchsia, logcat or
// syslog, otherwise s itself, which needs a group.
func ProcessKey(s string) (*regexp.Regexp, error) {
	if preset, ok := processKeys()[s]; ok {
		s = preset
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("process key %q: %w; use fuchsia, logcat, syslog or a regular expression with a group", s, err)
	}
	if re.NumSubexp() == 0 {
		return nil, fmt.Errorf("process key %q: no group captures the process; write one, as in ^\\[(\\d+)\\], or use fuchsia, logcat or syslog", s)
	}
	return re, nil
}

// enterProcess makes the process of a line the current one, by Options.ProcessKey.
func (f *lineFilter) enterProcess(text []byte) {
	var key []byte
	if m := f.o.ProcessKey.FindSubmatchIndex(text); m != nil {
		for i := 2; i+1 < len(m); i += 2 { // first group that matched
			if m[i] >= 0 {
				key = text[m[i]:m[i+1]]
				break
			}
		}
	}
	enterKey(f, key)
}

// enterKey makes the process with this key current, and counts a line for it.
func enterKey(f *lineFilter, key []byte) {
	key = key[:min(len(key), maxKey)]
	if f.turn++; len(key) > 0 {
		f.keyedLines++
	}
	if f.process.key != string(key) {
		f.setProcess(f.change(key))
	}
	f.process.used = f.turn
}

// change switches to the process with this key, which must not be the current process. The first
// process of a stream has no key, and owns lines without a key.
func (f *processes) change(key []byte) *process {
	if f.all == nil {
		f.all = map[string]*process{f.process.key: f.process}
	}
	p := f.all[string(key)]
	if p == nil {
		p = &process{key: string(key)}
		f.all[p.key] = p
	}
	f.grown += max(0, f.process.weight()-f.began)
	f.process, f.began = p, p.weight()
	if len(f.all) > f.limits.Processes || f.grown > f.limits.weight()/4 {
		f.grown = 0
		f.evict()
	}
	return p
}

// evict drops the longest idle processes if there are too many, or if they are too large. It stops
// at three quarters of a limit to make calls rare, since each call examines all processes.
func (f *processes) evict() {
	idle := make([]*process, 0, len(f.all))
	held := 0
	for _, p := range f.all {
		if p != f.process {
			idle = append(idle, p)
			held += p.weight()
		}
	}
	most := f.limits.weight()
	if len(idle) < f.limits.Processes && held <= most {
		return
	}
	tooLarge := held > most
	slices.SortFunc(idle, func(a, b *process) int { return cmp.Compare(a.used, b.used) })
	for _, p := range idle {
		if len(f.all) <= f.limits.Processes*3/4 && held <= most/4*3 {
			return
		}
		reason := evictedForNumber
		if tooLarge && held > most/4*3 {
			reason = evictedForSize
		}
		if p.hex != nil {
			f.openDicts--
		}
		held -= p.weight()
		delete(f.all, p.key)
		f.evictions++
		if f.evicted != nil {
			f.evicted(p.key, reason)
		}
	}
}
