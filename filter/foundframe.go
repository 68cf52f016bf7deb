package filter

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/report"
)

// frames returns the frames of a stack, which other stacks may share.
func (f *Finder) frames(rows []stackRow) []*report.TraceFrame {
	sum, ok := f.sum(rows)
	if known := f.stacks[sum]; ok && known != nil {
		return known
	}
	all := f.makeFrames(rows)
	if ok {
		if len(f.stacks) >= maxFoundStacks {
			clear(f.stacks)
		}
		f.stacks[sum] = all
	}
	return all
}

// sum returns a hash of the answers of a stack. ok is not set if the frames are not those of the
// answers alone.
func (f *Finder) sum(rows []stackRow) (sum uint64, ok bool) {
	s := &f.stack
	text := f.text[:0]
	at := 0
	for i := range rows {
		r := &rows[i]
		line := s.text[at:r.end]
		at = r.end
		if r.named || r.answer >= 0 && isNamedIn(&s.answers[r.answer], line) {
			return 0, false
		}
		text = binary.LittleEndian.AppendUint32(text, uint32(r.frame))
		text = binary.LittleEndian.AppendUint32(text, uint32(r.answer))
		text = strconv.AppendBool(text, isChance(s, r, line))
	}
	for i := range s.answers {
		a := &s.answers[i]
		text = binary.LittleEndian.AppendUint64(appendAddress(text, a), uint64(len(a.Frames)))
		if a.Offset == 0 {
			text = binary.LittleEndian.AppendUint64(text, a.Addr)
		}
		if len(a.Frames) > 0 { // an answer may become better
			text = appendName(appendName(text, a.Frames[0].Func), a.Frames[0].File)
		}
	}
	f.text = text
	return maphash.Bytes(f.seed, text), true
}

// isChance reports whether a row is a frame of a kernel that was on the stack by chance.
func isChance(s *openStack, r *stackRow, line []byte) bool {
	return r.answer >= 0 && s.answers[r.answer].Dialect == "kernel" && bytes.Contains(line, []byte(" ? "))
}

// isNamedIn reports whether the line of an answer without frames may have a name.
func isNamedIn(a *Resolved, line []byte) bool {
	if len(a.Frames) > 0 {
		return false
	}
	switch a.Dialect {
	case "sanitizer":
		return bytes.Contains(line, []byte(" in "))
	case "kernel":
		return true
	case "tsan":
		return !bytes.Contains(line, []byte("<null> <null>"))
	}
	return false
}

// makeFrames returns the frames of a stack.
func (f *Finder) makeFrames(rows []stackRow) []*report.TraceFrame {
	s := &f.stack
	all := make([]*report.TraceFrame, 0, len(rows))
	at := 0
	for i := range rows {
		r := &rows[i]
		text := s.text[at:r.end]
		at = r.end
		switch {
		case r.more, r.answer < 0 && !r.named:
		case r.answer < 0:
			if named, ok := f.named(text); ok {
				all = append(all, &named)
			}
		default:
			a := &s.answers[r.answer]
			if isChance(s, r, text) {
				continue
			}
			fr := &report.TraceFrame{Object: a.Module, ID: a.ID, Address: a.Addr, Offset: a.Offset}
			if r.frame < len(a.Frames) {
				fr.Frame = a.Frames[r.frame]
				fr.Func, _ = report.Unversioned(fr.Func)
			} else if isNamedIn(a, text) {
				if a.Dialect == "kernel" {
					fr.Func = kernelFunction(text)
				} else {
					named, _ := f.named(text)
					fr.Frame = named.Frame
				}
			}
			if a.Dialect == "kernel" && len(all) == 0 && len(rows) > 1 && isReporter(fr.Func) {
				continue
			}
			all = append(all, fr)
		}
	}
	return all
}

// isReporter reports whether a function of a kernel prints a report of its callers.
func isReporter(name string) bool {
	for _, prefix := range []string{"dump_stack", "__dump_stack", "show_stack", "dump_backtrace", "print_report", "print_address_description", "kasan_", "__kasan_", "__asan_", "kmsan_", "kcsan_", "__kcsan_", "__tsan_", "ubsan_", "__ubsan_", "kfence_", "__warn", "warn_slowpath", "panic", "__schedule_bug", "__might_resched", "lockdep_", "print_circular_bug", "unwind_backtrace"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// kernelFunction returns the function that a frame of a kernel names, as in vfs_write+0xc7/0x3f0, or "".
func kernelFunction(line []byte) string {
	at := bytes.Index(line, []byte("+0x"))
	if at < 0 {
		return ""
	}
	return string(line[bytes.LastIndexAny(line[:at], " ([<:")+1 : at])
}

// named returns a frame that the producer has named, in one of these forms:
//
//	#1 0x7f31c2a01153 in main /src/main.cc:7:3
//	#1 0x7f31c2a01153 in main (/opt/shop/inventory+0x1153) (BuildId: 3a0a920c3f1b7c55)
//	#1 main /src/main.cc:7:3 (inventory+0x1153) (BuildId: 3a0a920c3f1b7c55)
//	#1 main <null> (inventory+0x1153)
func (f *Finder) named(text []byte) (fr report.TraceFrame, ok bool) {
	line := strings.TrimRight(string(text), " \t")
	hash := strings.LastIndex(line, " #")
	if strings.HasPrefix(line, "#") {
		hash = -1
	} else if hash < 0 {
		return fr, false
	}
	rest := strings.TrimLeft(line[hash+2:], "0123456789")
	rest = strings.TrimLeft(rest, " ")
	inAddress := strings.HasPrefix(rest, "0x")
	if inAddress {
		address, after, _ := strings.Cut(rest, " ")
		fr.Address, _ = strconv.ParseUint(address[2:], 16, 64)
		rest, ok = strings.CutPrefix(strings.TrimLeft(after, " "), "in ")
		if !ok {
			return fr, false
		}
	}
	if i := strings.LastIndex(rest, " (BuildId: "); i > 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndex(rest, "+0x"); i > 0 && strings.HasSuffix(rest, ")") {
		open := strings.LastIndex(rest[:i], " (/")
		if open < 0 {
			open = strings.LastIndex(rest[:i], " (")
		}
		if open >= 0 {
			fr.Object = rest[open+2 : i]
			fr.Offset, _ = strconv.ParseUint(rest[i+3:len(rest)-1], 16, 64)
			rest = rest[:open]
		}
	}
	rest = strings.TrimSuffix(rest, " <null>")
	if file, line, column, ok := sourceAt(rest); ok {
		from := strings.LastIndex(file, " /")
		if from < 0 {
			from = strings.LastIndexByte(file, ' ')
		}
		if from >= 0 {
			rest = strings.TrimSuffix(file[:from], " at")
			fr.File, fr.Line, fr.Column, fr.HasLine = f.paths.shown(file[from+1:]), line, column, true
		}
	}
	if rest != "<null>" {
		fr.Func = rest
	}
	return fr, fr.Func != "" || fr.HasLine || fr.Object != ""
}

// sourceAt parses the line and the column, 0 without one, at the end of s: FILE:LINE:COLUMN. file
// has what is before.
func sourceAt(s string) (file string, line, column uint32, ok bool) {
	file, last, ok := cutNumber(s)
	if !ok {
		return s, 0, 0, false
	}
	if before, n, ok := cutNumber(file); ok {
		return before, n, last, true
	}
	return file, last, 0, true
}

// cutNumber cuts ":N" off s.
func cutNumber(s string) (before string, n uint32, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return s, 0, false
	}
	number, err := strconv.ParseUint(s[i+1:], 10, 32)
	return s[:i], uint32(number), err == nil
}

// hash returns a hash that is equal for the same report of one build.
func (f *Finder) hash(x *report.Finding) uint64 {
	text := appendName(appendName(f.text[:0], x.Tool), x.Kind)
	for t := range x.Traces {
		text = binary.LittleEndian.AppendUint32(text, uint32(len(x.Traces[t].Frames)))
		for _, fr := range x.Traces[t].Frames {
			text = fr.ID.AppendHex(appendName(text, fr.Object))
			place := fr.Offset
			if place == 0 && fr.Func == "" {
				place = fr.Address
			}
			text = binary.LittleEndian.AppendUint64(text, place)
			text = appendName(appendName(text, fr.Func), fr.File)
			text = binary.LittleEndian.AppendUint32(text, fr.Line)
		}
	}
	if len(x.Traces) == 0 {
		text = appendName(text, x.Message)
	}
	f.text = text
	return maphash.Bytes(f.seed, text)
}
