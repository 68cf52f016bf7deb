package judge

import (
	"path"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// findBias sets the load bias of f's module, if f, the log or the living process shows it. If f
// contradicts a known bias, findBias sets the verdict's field moved.
func (t *Trace) findBias(f *Frame, facts *dialect.Facts) {
	v := t.verdictOf(f)
	if v == nil || v.image.Err != nil || f.Addr == 0 {
		return
	}
	if v.biased {
		if !v.moved && f.Call != dialect.Adjusted {
			object.Guard(func() { v.moved = showsOther(v.image, f, v.bias) })
		}
		return
	}
	if f.live != nil {
		v.bias, v.biased = f.live.Bias, true
		return
	}
	object.Guard(func() { v.bias, v.biased = biasBy(v.image, f, facts) })
}

func showsOther(m *Image, f *Frame, bias uint64) bool {
	if f.Symbol.Inside {
		return false
	}
	if addr, ok := numbered(m, f); ok {
		return f.Addr-addr != bias
	}
	syms := m.symbols(f.Symbol.Name)
	return len(syms) == 1 && f.Addr-(syms[0].Addr+uint64(f.Symbol.Offset)) != bias
}

// searchBiases searches for the load biases that neither a frame nor a map shows. It repeats the
// search while it finds more: a new bias may show that a frame is in a signal trampoline. A signal
// has then interrupted the next frame, which may be in another module.
func (t *Trace) searchBiases(frames []*Frame) {
	for before := -1; ; {
		found, some := 0, false
		interrupted := false
		for _, f := range frames {
			v := t.verdictOf(f)
			if v == nil || v.image.File == nil || f.Kind != dialect.Runtime || f.Addr == 0 {
				interrupted = false
				continue
			}
			object.Guard(func() {
				if !v.biased {
					v.sight(f, interrupted && f.Number != 0)
					some = true
				}
				interrupted = v.biased && f.Call != dialect.Adjusted && v.image.isTrampoline(f.Addr-v.bias)
			})
		}
		if !some {
			return
		}
		for _, f := range frames {
			if v := t.verdictOf(f); v != nil && v.image.File != nil {
				t.search(v)
				if v.biased {
					found++
				}
			}
		}
		if found == before || before >= 0 && found == 0 {
			return
		}
		before = found
	}
}

// biasBy returns the load bias of m from the file, the operator's base, a map or a module in the
// log, or f's own numbers.
func biasBy(m *Image, f *Frame, facts *dialect.Facts) (bias uint64, ok bool) {
	if bias, ok = m.knownBias(); ok {
		return bias, true
	}
	if entry, found := facts.Around(f.Frame); found && !entry.Deleted && m.isOf(&entry, f) {
		if bias, ok = m.biasOfMap(&entry); ok {
			return bias, true
		}
	}
	if fact, found := facts.Module(f.Module); found && fact.HasBase {
		return fact.Base - m.lowest(), true
	} else if found && fact.Text != 0 {
		return m.biasOfText(fact.Text)
	}
	if addr, ok := numbered(m, f); ok {
		// the program that printed the frame may have subtracted from the number but not from the
		// address
		for _, less := range []uint64{0, 1, 2, 4} {
			if bias = f.Addr - less - addr; bias%pageSize == 0 {
				return bias, true
			}
		}
		return 0, false
	}
	if f.Symbol.Inside {
		return 0, false
	}
	if syms := m.symbols(f.Symbol.Name); len(syms) == 1 {
		bias = f.Addr - (syms[0].Addr + uint64(f.Symbol.Offset))
		return bias, bias%pageSize == 0
	}
	return 0, false
}

// isOf reports whether a mapping that covers the address of f belongs to f's module, whose file is
// m, and not to a module of another process. It compares names without versions, which differ in
// links to libraries.
func (m *Image) isOf(entry *dialect.Map, f *Frame) bool {
	name := Stem(path.Base(entry.Path))
	return f.Module == "" || entry.Path == m.Path || name == Stem(path.Base(m.Path)) || name == Stem(ProgramName(f.Module))
}

// Stem returns the name of a library up to ".so". The versions after it may differ in links to the
// library.
func Stem(name string) string {
	name, _, _ = strings.Cut(name, ".so")
	return name
}

// numbered returns the address of f in the file if f's number does not depend on the load bias.
func numbered(m *Image, f *Frame) (addr uint64, ok bool) {
	switch f.Kind {
	case dialect.Vaddr:
		return f.Value, true
	case dialect.BaseOffset:
		if m.Fixed && f.Addr != 0 && f.Addr-f.Value == m.lowest() {
			return f.Addr, true // an offset from the first page, as callers of dladdr print it
		}
		if m.Fixed && f.Value >= m.lowest() {
			return f.Value, true // glibc prints the address itself: such a file has bias 0
		}
		return f.Value + m.lowest(), true
	case dialect.FileOffset:
		return m.atOffset(f.Value)
	case dialect.CodeOffset:
		return m.inCode(f.Value, f.Crash.Size)
	case dialect.FileOrRuntime:
		addr, ok = m.atOffset(f.Value)
		if m.Fixed && m.File != nil && m.isCode(f.Value) {
			return f.Value, !ok || addr == f.Value
		}
		return addr, ok
	}
	return 0, false
}
