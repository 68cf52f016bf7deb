package dialect

import (
	"bytes"
	"slices"

	"github.com/symfilter/symfilter/internal/object"
)

// guessedCalls is the number of return addresses after a call that prove a file that was found by
// its name alone. In another file at most one address in 40 follows a call.
const guessedCalls = 4

// namedCalls is that number for a library of which the log has the name and not the folder. The
// library of this name in one of the few folders that are searched is mostly the right one.
const namedCalls = 2

// A verdict holds what the frames of a trace show about one module.
type verdict struct {
	first   Frame  // the fields about the module, of the first frame that named it; see verdictOf
	unnamed string // path of the file that was tried for frames without a module, before any named it
	image   *Image
	bias    uint64
	biased  bool // bias is known
	moved   bool // frames show different biases: several processes write to the log
	proved  bool
	refuted error
	symbols int      // frames that agree with symbols of the file
	calls   int      // return addresses that follow a call
	failed  []uint64 // return addresses without a call before them, at most maxFailures

	seen  []sighting // addresses that the bias must explain, as long as it is not known
	tried int        // length of seen at the last search
	usual uint64     // a bias that is likely; 0 if unknown

	weighed [readings]weighing // of the frames of the kind Offsetted
	reading reading            // the reading of their numbers
	unread  bool               // no reading agrees with the file, or several do
	unseen  bool               // the file could not be read

	sizes map[sizedName]sized // functions of a kernel that were looked up
}

// fail notes that the file has no call before addr, or no code there.
func (v *verdict) fail(addr uint64) {
	if len(v.failed) < maxFailures && !slices.Contains(v.failed, addr) {
		v.failed = append(v.failed, addr)
	}
}

// verdictOf returns the verdict of f's module. It is nil if f has no module, or if the trace has
// too many.
func (t *Trace) verdictOf(f *Frame) *verdict {
	if f.Place.Verified != "" || f.Place.Err != nil || f.Module == "" && f.ID.IsZero() && !f.Program {
		return nil
	}
	key := moduleKey{process: f.Process, name: f.Module, prefix: f.prefix}
	if f.Kernel != nil {
		key.name += " of " + f.Kernel.Named().Release // a module of another release is another file
	}
	if !f.ID.IsZero() {
		key.name = f.ID.String()
	}
	if v := t.modules[key]; v != nil {
		return v
	}
	return t.verdictFor(key, func(v *verdict) *Image {
		v.first = Frame{Module: f.Module, ID: f.ID, prefix: f.prefix, Addr: f.Addr, Program: f.Program, Deleted: f.Deleted}
		m := t.Open(f)
		if m.Err == nil && !f.prefix.IsZero() && !bytes.HasPrefix(m.ID.Bytes(), f.prefix.Bytes()) {
			return &Image{Path: m.Path, Err: ErrOtherID}
		}
		return m
	})
}

// verdictFor returns the verdict with this key, and opens its file if it is new. It returns nil
// if the trace has too many.
func (t *Trace) verdictFor(key moduleKey, open func(v *verdict) *Image) *verdict {
	v := t.modules[key]
	if v == nil && len(t.modules) < maxModules {
		v = new(verdict)
		v.image = open(v)
		v.image.shown.demangle = t.Demangle
		if t.modules == nil {
			t.modules = make(map[moduleKey]*verdict)
		}
		t.modules[key] = v
	}
	return v
}

// address returns the address of f as the file has it, not adjusted. derived is set if it is
// computed from f's symbol, because the line has no other number.
func (v *verdict) address(f *Frame) (addr uint64, derived bool, err error) {
	if addr, ok := numbered(v.image, f); ok {
		return addr, false, nil
	}
	var syms []object.Symbol
	if !f.Symbol.Inside {
		syms = v.image.symbols(f.Symbol.Name)
	}
	if f.Kind == InSymbol && v.image.Visit != nil {
		syms = v.image.visitedSymbols(f.Symbol.Name)
	}
	switch {
	case f.Kind == FileOffset, f.Kind == CodeOffset, f.Kind == FileOrRuntime:
		return 0, false, ErrNotCode
	case f.Kind == Runtime:
		addr, err = v.runtime(f, syms)
		return addr, false, err
	case len(syms) == 0:
		return 0, false, ErrNoSym
	case len(syms) > 1:
		return 0, false, ErrManySym
	}
	return syms[0].Addr + uint64(f.Symbol.Offset), true, nil
}

// runtime returns the address, as the file has it, of a frame with an address in the process, whose
// symbol is one of syms. The symbol takes precedence over the bias, which may be that of another
// process that writes to the same log. If the address is not a whole number of pages away from the
// symbol, the file is not the one that ran.
func (v *verdict) runtime(f *Frame, syms []object.Symbol) (uint64, error) {
	if len(syms) == 0 {
		if !v.biased || v.moved {
			return 0, ErrNoBias
		}
		return f.Addr - v.bias, nil
	}
	found, n := uint64(0), 0
	for _, s := range syms {
		addr := s.Addr + uint64(f.Symbol.Offset)
		switch {
		case v.biased && addr == f.Addr-v.bias:
			return addr, nil
		case !v.image.Fixed && (f.Addr-addr)%pageSize == 0:
			found, n = addr, n+1
		}
	}
	switch n {
	case 0:
		return 0, ErrSymbol
	case 1:
		return found, nil
	}
	return 0, ErrManySym
}
