package filter

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

// The context of a Filter is printed as lines of one element each. Modules and
// maps are markup as any filter reads it; what only this package knows is in
// elements of its own, which others pass as text:
//
//	{{{context:1}}}                        what follows is a context, of this version
//	{{{stream:LINE:TURN:GROWN:BEGAN}}}     counters of the stream
//	{{{process:KEY:USED}}}                 what follows is of this process; the first is the one at work
//	{{{reset}}} {{{module:…}}} {{{mmap:…}}}
//	{{{hexmodule:ID:NAME:BUILDID}}}        a module whose name is not plain ASCII
//	{{{opendict:LINES:PREFIX:BODY}}}       the hexdict that its lines are in the middle of
//	{{{heldline:…}}} {{{heldmap:…}}} {{{heldrecord:…}}}   the module line that collects its maps: it is not printed yet
//	{{{tail:LINE:PASSED:SKIP}}}            the unfinished last line
//	{{{longline:CUT}}}                     that line, if it is too long to be interpreted
//
// Bytes of the log are in hex, so that a context is ASCII text whatever the log
// held.
const contextVersion = 1

const (
	maxOpenLine    = 64 << 10 // bytes that a module line may hold back; one with more goes out at once, and its further maps are a line of their own
	maxIdleContext = 32 << 20 // bytes of a context for the processes that are not at work; those idle longest are left out
)

// AppendContext appends what the Filter knows of the log so far, as lines of
// ASCII text. A new Filter with the same options that [Filter.Restore] has given
// it prints of the rest of the log exactly what this one will, the module line
// that is still collecting its maps included. It may be called between any two
// calls of Write; between calls of Text and Element, at a line's end.
//
// A context has some 60 bytes for a map and 100 for a module: 10 KiB are usual.
// A process with all that its limits allow, 65,536 modules and 262,144 maps,
// takes 30 to 100 MiB. Processes that are not at work get 32 MiB together: those
// idle longest are left out, as if they had been forgotten.
func (f *Filter) AppendContext(dst []byte) []byte {
	dst = appendContextLine(dst, "context", contextVersion)
	dst = appendContextLine(dst, "stream", uint64(f.line), f.turn, uint64(f.grown), uint64(f.began))
	dst = f.process.appendContext(dst)
	if m := f.open; m != nil {
		dst = f.appendHeldLine(dst, m)
	}
	if f.long {
		dst = appendContextLine(dst, "longline", f.visible.cut)
	} else if len(f.tail) > 0 {
		dst = appendContextLine(dst, "tail", f.tail, uint64(f.passed), uint64(f.skip))
	}
	idle := make([]*process, 0, len(f.processes))
	for _, p := range f.processes {
		if p != f.process {
			idle = append(idle, p)
		}
	}
	slices.SortFunc(idle, func(a, b *process) int {
		return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(a.key, b.key))
	})
	start := len(dst)
	for _, p := range idle {
		n := len(dst)
		if dst = p.appendContext(dst); len(dst)-start > maxIdleContext {
			return dst[:n]
		}
	}
	return dst
}

// Pending says what lines that come may yet change, or belong to: how many lines
// of the output the module line will be that is still collecting its maps, 0 if
// there is none; and whether any process is in the middle of a hexdict.
func (f *Filter) Pending() (lines int, dict bool) {
	switch m := f.open; {
	case m == nil:
	case f.json != nil:
		lines = 1
	default:
		lines = bytes.Count(m.before, newline) + bytes.Count(m.after, newline)
	}
	return lines, f.openDicts > 0
}

// WritePlain filters the lines at the beginning of b, which holds whole lines,
// up to the first that holds "{{{", and returns how many bytes they are. It
// is Write for whoever looks at lines with markup before the Filter does: bytes
// of others are looked at once. In the middle of a line, or of a hexdict, it
// does nothing.
func (f *Filter) WritePlain(b []byte) (int, error) {
	if len(f.tail) > 0 || f.long || f.openDicts > 0 {
		return 0, f.err
	}
	n, lines := findOpen(b)
	if n < len(b) {
		n = bytes.LastIndexByte(b[:n], '\n') + 1
	}
	switch {
	case n == 0:
		return 0, f.err
	case f.o.Color == ColorKeep:
		f.plain(b[:n], lines)
	default:
		f.block(b[:n])
	}
	f.send()
	return n, f.err
}

// appendContext appends what the process has said so far.
func (p *process) appendContext(dst []byte) []byte {
	dst = appendContextLine(dst, "process", p.key, p.used)
	dst = p.space.appendMarkup(dst)
	if d := p.hex; d != nil {
		dst = appendContextLine(dst, "opendict", uint64(d.lines), d.prefix, d.body)
	}
	return dst
}

// Bits of the flags of a held line.
const (
	heldAdds = 1 << iota
	heldJSON // it was held for JSON: no line end, and perhaps records
)

// appendHeldLine appends the module line that collects its maps. Its module is
// one of the process at work: any other would have ended it.
func (f *Filter) appendHeldLine(dst []byte, m *moduleLine) []byte {
	var flags uint64
	var out []byte
	if m.adds {
		flags |= heldAdds
	}
	if f.json != nil {
		flags |= heldJSON
		out = f.out
	}
	dst = appendContextLine(dst, "heldline", m.mod.id, flags, m.raw, out, m.before, m.after, sgr.AppendTransition(nil, sgr.State{}, m.state), m.process)
	for _, v := range m.maps {
		dst = appendContextLine(dst, "heldmap", v.start, v.end, v.rel, uint64(v.mode))
	}
	for _, r := range m.records {
		switch {
		case r.module == m:
			dst = appendContextLine(dst, "heldrecord")
		case r.module != nil:
			dst = appendContextLine(dst, "heldrecord", appendModule(nil, r.module))
		default:
			dst = appendContextLine(dst, "heldrecord", r.json)
		}
	}
	return dst
}

// appendContextLine appends a line of a context: numbers in decimal, bytes in
// hex.
func appendContextLine(dst []byte, tag string, fields ...any) []byte {
	dst = append(append(dst, "{{{"...), tag...)
	for _, field := range fields {
		dst = append(dst, ':')
		switch v := field.(type) {
		case int:
			dst = strconv.AppendInt(dst, int64(v), 10)
		case uint64:
			dst = strconv.AppendUint(dst, v, 10)
		case string:
			dst = hex.AppendEncode(dst, []byte(v))
		case []byte:
			dst = hex.AppendEncode(dst, v)
		}
	}
	return append(dst, "}}}\n"...)
}

// appendMarkup appends the space as markup lines that describe it anew.
func (s *space) appendMarkup(dst []byte) []byte {
	dst = append(markup.Reset{}.AppendMarkup(dst), '\n')
	var replaced []*module // IDs that stand for another binary by now come first: what is mapped stays theirs
	of := make(map[*module][]interval)
	for _, run := range s.runs {
		for _, v := range run {
			if of[v.mod] == nil && s.modules[v.mod.id] != v.mod {
				replaced = append(replaced, v.mod)
			}
			of[v.mod] = append(of[v.mod], v)
		}
	}
	for _, m := range replaced {
		dst = m.appendMarkup(dst, of[m])
	}
	for _, id := range s.ids() {
		m := s.modules[id]
		dst = m.appendMarkup(dst, of[m])
	}
	return dst
}

// appendMarkup appends m and where it lies.
func (m *module) appendMarkup(dst []byte, at []interval) []byte {
	if plainName(m.name) && !m.buildID.IsZero() {
		dst = append(markup.Module{ID: m.id, Name: m.name, BuildID: m.buildID}.AppendMarkup(dst), '\n')
	} else {
		dst = appendContextLine(dst, "hexmodule", m.id, m.name, m.buildID.Bytes())
	}
	for _, v := range at {
		// No map has all of the address space: a size of 2^64 cannot be logged.
		e := markup.MMap{Addr: v.start, Size: v.end - v.start + 1, Module: m.id, Mode: v.mode, Rel: v.rel}
		dst = append(e.AppendMarkup(dst), '\n')
	}
	return dst
}

// plainName reports whether a module's name stands in markup as it is, in
// ASCII.
func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '{' || c == '}' {
			return false
		}
	}
	return true
}

var errNotNew = errors.New("restore a context: the filter has seen lines already")

// Restore gives a new Filter, to which nothing was written yet, a context that
// [Filter.AppendContext] has made. An error says that it is none, or one of
// another version: then the Filter is as new. A context is not trusted: whatever
// it holds, the Filter keeps within the limits that logs are held to. It begins
// the search for the debug files of the modules.
//
// Without [Options.ProcessKey] only the lines that had no key are restored.
func (f *Filter) Restore(context []byte) error {
	if f.line != 0 || f.Unfinished() || f.long || f.open != nil || len(f.sunk) > 0 {
		return errNotNew
	}
	r := restorer{f: f}
	if err := r.lines(context); err != nil {
		return fmt.Errorf("restore a context: %w", err)
	}
	r.install()
	return nil
}
