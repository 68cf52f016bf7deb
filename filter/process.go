package filter

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// process is one process of the stream.
type process struct {
	key  string
	used uint64 // Filter.turn at its last line
	Context
}

// processes are those of one stream.
type processes struct {
	process   *process            // of the current line
	all       map[string]*process // nil if the stream has one
	turn      uint64              // lines that looked for their process
	began     int                 // weight of the current process when it became that
	grown     int                 // weight that all have gained since evict looked at them
	openDicts int                 // processes in the middle of a hexdict
}

// setProcess makes p the current process.
func (f *lineFilter) setProcess(p *process) {
	f.process, f.processKey = p, p.key
	f.space = &p.space
	f.forgetRecent()
}

// Limits of the processes of one stream, which the markup format asks to keep
// apart.
const (
	maxProcesses = 1024    // contexts; beyond it the one that was idle longest goes
	maxHeld      = 1 << 20 // modules, maps and 64 bytes of names in all contexts but the one at work, give or take a quarter
	maxKey       = 256     // bytes of a key that count
)

// processKeys are the presets of [ProcessKey].
var processKeys = map[string]string{
	// [00135.795][1727][2405][klog] INFO: …, [12.345] 01727.02405> …,
	// [2026-11-20 10:00:00][1727][2405][tag] …
	"fuchsia": `^\s*\[[-0-9 :.]+\]\s*\[?(\d+)[].:]`,
	// 12-20 00:03:53.008 11002 11003 F DEBUG   : …, F/DEBUG (11002): …
	"logcat": `^\s*(?:(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d\.\d+\s+(?:[a-z]\S*\s+)?(\d+)\s+\d+\s+[VDIWEFS]\s|[VDIWEFS]/[^(]*\(\s*(\d+)\):)`,
	// Nov 20 10:00:00 host app[1727]: …, <34>1 2026-11-20T10:00:00Z host app 1727 …
	"syslog": `^(?:<\d+>1 \S+ \S+ (\S+ \d+) |[^\[]*?(\S+\[\d+\]): ?)`,
}

// ProcessKey returns the expression that tells the processes of a stream
// apart: that of a preset (fuchsia, logcat, syslog), or s itself, which needs
// a group.
func ProcessKey(s string) (*regexp.Regexp, error) {
	if preset, ok := processKeys[s]; ok {
		s = preset
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("process key %q: %w; or one of fuchsia, logcat, syslog", s, err)
	}
	if re.NumSubexp() == 0 {
		return nil, fmt.Errorf("process key %q: no group says which part is the process; write one, as in ^\\[(\\d+)\\], or fuchsia, logcat, syslog", s)
	}
	return re, nil
}

// enterProcess makes the process of a line the one at work.
func (f *lineFilter) enterProcess(text []byte) {
	if f.o.ProcessKey == nil {
		return
	}
	var key []byte
	if m := f.o.ProcessKey.FindSubmatchIndex(text); m != nil {
		for i := 2; i+1 < len(m); i += 2 { // the first group that took part
			if m[i] >= 0 {
				key = text[m[i]:m[i+1]]
				break
			}
		}
	}
	key = key[:min(len(key), maxKey)]
	f.turn++
	if f.process.key != string(key) {
		f.changeProcess(string(key))
	}
	f.process.used = f.turn
}

// changeProcess makes the process with a key the one at work. The first process of
// all has no key: it is that of lines without one.
func (f *lineFilter) changeProcess(key string) {
	if f.all == nil {
		f.all = map[string]*process{f.process.key: f.process}
	}
	p := f.all[key]
	if p == nil {
		p = &process{key: key}
		f.all[key] = p
	}
	f.grown += max(0, f.process.space.weight()-f.began)
	f.setProcess(p)
	f.began = p.space.weight()
	if len(f.all) > maxProcesses || f.grown > maxHeld/4 {
		f.grown = 0
		f.evict()
	}
}

// evict forgets the processes that were idle longest when there are too many,
// or they hold too much: down to three quarters, because each time costs a
// look at all of them.
func (f *processes) evict() {
	idle := make([]*process, 0, len(f.all))
	held := 0
	for _, p := range f.all {
		if p != f.process {
			idle = append(idle, p)
			held += p.space.weight()
		}
	}
	if len(idle) < maxProcesses && held <= maxHeld {
		return
	}
	slices.SortFunc(idle, func(a, b *process) int { return cmp.Compare(a.used, b.used) })
	for _, p := range idle {
		if len(f.all) <= maxProcesses/4*3 && held <= maxHeld/4*3 {
			return
		}
		if p.hex != nil {
			f.openDicts--
		}
		held -= p.space.weight()
		delete(f.all, p.key)
	}
}
