package dialect

import "bytes"

// Seastar prints return addresses minus one, as addresses in the ELF files. Addresses in the
// executable have no module. Signal handlers print a line for each address, other messages a list
// on one line:
//
//	Backtrace:
//	  0x13cb
//	  /opt/scylladb/libreloc/libc.so.6+0x54daf
//	Reactor stalled for 33 ms on shard 3. Backtrace: 0x13cb /lib64/libc.so.6+0x54daf (BuildId: 3a0a920c…)
//
// The build ID at the end is the executable's.
var seastar = Dialect{
	Name: "seastar", Who: "Seastar: ScyllaDB, Redpanda",
	Needs:  "the build ID at the end of the list (since 2026), or --image FILE for the executable",
	Sample: "Backtrace: 0x13cb /opt/scylladb/libreloc/libc.so.6+0x54daf (BuildId: 3a0a920c3f1b7c55)",
}

const maxListed = 128 // frames in a list on one line; Seastar keeps at most 100

// matchSeastarLine matches a frame on a line of its own.
func matchSeastarLine(r *Reader, l *Line, at int) bool {
	b := l.Text
	if at > 0 && b[at-1] != '+' && !endsWith(b, at, "  ") {
		return false
	}
	value, end, ok := prefixedHex(b, at)
	if !ok || !onlyBlanks(b, end) || r.Firmware && at == 0 { // Rust on ESP32 prints the same form
		return false
	}
	start := at
	if at > 0 && b[at-1] == '+' {
		start = pathBefore(b, at-1)
	}
	if start >= at && at > 0 && b[at-1] == '+' || !endsWith(b, start, "  ") && start > 0 {
		return false
	}
	f := l.frame()
	f.Start = start
	f.seastar(r, b[start:at], value)
	l.after(f, end)
	return true
}

// seastar sets the module and the address of f. module is the text before the address: empty, or a
// path and "+".
func (f *Frame) seastar(r *Reader, module []byte, value uint64) {
	f.Kind, f.Value, f.Call = Vaddr, value, Adjusted
	if len(module) > 0 {
		f.Module = r.modules.name(module[:len(module)-1])
	}
}

// matchSeastarList matches a list of frames on one line. The first number of the list begins at the
// given offset.
func matchSeastarList(r *Reader, l *Line, at int) bool {
	b := l.Text
	start := at
	if b[at-1] == '+' {
		start = bytes.LastIndexByte(b[:at], ' ') + 1
	}
	if !endsWith(b, start, "acktrace: ") {
		return false
	}
	list := b[start:]
	end := len(b)
	var id = bytes.Index(list, []byte(" (BuildId: "))
	if id >= 0 {
		end = start + id
	}
	for from := start; from < end && len(l.Frames) < maxListed; {
		to := end
		if i := bytes.IndexByte(b[from:end], ' '); i >= 0 {
			to = from + i
		}
		word := b[from:to]
		x := bytes.LastIndex(word, []byte("0x"))
		if x < 0 || x > 0 && word[x-1] != '+' {
			if len(word) > 0 && len(l.Frames) == 0 {
				return false
			}
			break
		}
		value, stop, ok := prefixedHex(word, x)
		if !ok || stop != len(word) {
			return false
		}
		f := l.frame()
		f.seastar(r, word[:x], value)
		f.Below = "  " + string(word) + ": "
		from = to + 1
	}
	if len(l.Frames) == 0 {
		return false
	}
	if id >= 0 {
		of, _, ok := r.modules.idAfter(b, end)
		if !ok {
			return false
		}
		for i := range l.Frames {
			if l.Frames[i].Module == "" {
				l.Frames[i].ID = of
			}
		}
	}
	return true
}
