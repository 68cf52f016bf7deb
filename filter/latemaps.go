package filter

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/layout"
)

// lateMaps keeps the printed frames of a trace whose maps follow too late to hold the frames back.
// After the last map, the frames that the maps locate are printed as footnotes:
//
//	#3 0x7f31c2a01154 ledger::settle(int) at ledger.cc:7 (/opt/shop/libledger.so+0x1153)
type lateMaps struct {
	frames     []judge.Frame   // printed frames of the trace
	copies     []dialect.Frame // last block of memory for the dialect.Frames that frames refer to
	bytes      int             // approximate memory of frames
	unresolved int             // number of frames that are not located

	noted map[uint64]bool // addresses of the frames that await has kept

	buffered bool // the last held line is a map of the process
	start    int  // offset of the map in that line
	complete bool // all maps were read: the next frame is from another process
	// how often the frames were judged again, each time after a complete or partial list of maps
	tries int
}

const (
	maxLateFrames = 4096    // a heap profile has several thousand addresses
	maxLateBytes  = 1 << 20 // bytes of frames
	// bounds tries: lines of other processes may split a list of maps, and with 4096 frames a try
	// takes 4 ms
	maxLateTries = 64
)

func (m *lateMaps) keep(frames []judge.Frame) {
	for i := range frames {
		f := &frames[i]
		size := lateSize(len(f.Module) + len(f.Symbol.Name))
		if f.Crash != nil || f.Unread != nil || m.isFull(size) {
			continue
		}
		m.bytes += size
		// growing in small steps would copy the frames often
		if n := len(m.frames); n == cap(m.frames) && n >= maxLateFrames/16 {
			m.frames = slices.Grow(m.frames, maxLateFrames-n)
		}
		if len(m.copies) == cap(m.copies) {
			// earlier blocks must not move, since frames refer to them
			m.copies = make([]dialect.Frame, 0, min(max(2*cap(m.copies), 16), 512))
		}
		m.copies = append(m.copies, *f.Frame)
		kept := *f
		kept.Frame = &m.copies[len(m.copies)-1]
		kept.Edits = nil
		kept.Place.Image = nil // its file may be closed
		m.frames = append(m.frames, kept)
		if f.Place.Err != nil {
			m.unresolved++
		}
	}
}

// lateSize returns the approximate memory of a frame with names of n bytes.
func lateSize(n int) int { return 256 + n }

// isFull reports whether there is no room for another frame of size bytes.
func (m *lateMaps) isFull(size int) bool {
	return len(m.frames) == maxLateFrames || m.bytes+size > maxLateBytes
}

// await reports whether the answers for all frames of a line must follow the process's maps as
// footnotes. If so, the line stays unchanged, and await keeps one frame for each address.
func (m *lateMaps) await(frames []judge.Frame) bool {
	for i := range frames {
		f := &frames[i]
		if !f.Footnote {
			return false
		}
		if len(m.noted) < maxLateFrames && !m.noted[f.Addr] {
			m.note(f.Addr)
			f.Place.Err = judge.ErrNoBias
			m.keep(frames[i : i+1])
		}
	}
	return len(frames) > 0
}

func (m *lateMaps) note(addr uint64) {
	if m.noted == nil {
		m.noted = make(map[uint64]bool)
	}
	m.noted[addr] = true
}

// isNote reports whether b, the line after the last map, is a footnote, or a module element that
// precedes footnotes.
func (m *lateMaps) isNote(b []byte) bool {
	if bytes.HasPrefix(b, []byte("{{{module:")) {
		return true
	}
	rest, ok := bytes.CutPrefix(b[min(m.start, len(b)):], []byte("  #"))
	digits := bytes.TrimLeft(rest, "0123456789")
	return ok && len(digits) < len(rest) && len(digits) > 0 && digits[0] == ' '
}

func (m *lateMaps) forget() { *m = lateMaps{} }

func (c *locator) note(prefix, between []byte, fr *judge.Frame) {
	f := c.f
	if f.o.Dialects.Elements {
		c.elementNote(prefix, between, fr)
		return
	}
	a := c.answer(fr)
	if a == nil || !a.hasText {
		return
	}
	for i := range a.text.cuts {
		f.layout.NextLine(between)
		start := len(f.layout.Buf)
		f.layout.LogBytes(prefix)
		f.layout.Display.FrameBegins(len(f.layout.Buf), layout.LocatedIndent)
		if i == 0 {
			f.layout.Mark("  #")
			f.layout.Value(strconv.Itoa(fr.Number))
			f.layout.Mark(" ")
			if fr.Addr != 0 {
				f.layout.Dim("0x" + strconv.FormatUint(fr.Addr, 16) + " ")
			}
		} else {
			f.layout.Mark("  (inlined by) ")
		}
		t := a.text.frame(i)
		f.layout.Display.Breakable(len(f.layout.Buf))
		f.layout.Function(t.Name)
		if t.File != "" {
			f.layout.Display.Breakable(len(f.layout.Buf))
			f.layout.Mark(" at ")
			f.layout.Part(dialect.AtLine, &t)
		}
		if i == len(a.text.cuts)-1 {
			f.place(a)
			f.recordLocated(start, fr, a)
		}
		f.printLarge()
	}
}
