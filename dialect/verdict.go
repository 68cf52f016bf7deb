package dialect

import (
	"bytes"
	"slices"

	"github.com/symfilter/symfilter/internal/object"
)

// guessedCalls is the number of return addresses with a call before them that prove a file of which
// only the name is known. Of addresses in another file, at most one of 40 has a call before it.
const guessedCalls = 4

// A verdict is what the frames of a trace say of one module.
type verdict struct {
	first   Frame  // what the frame that named it first has of the module; see verdictOf
	unnamed string // path of the file that was tried for frames without a module, before any named it
	image   *Image
	bias    uint64
	biased  bool // bias is known
	moved   bool // frames show different biases: several processes write to the log
	proved  bool
	refuted error
	symbols int      // frames that agree with the file's symbols
	calls   int      // frames with a call before them
	failed  []uint64 // addresses without one, at most maxFailures

	seen  []sighting // what is known of the bias as long as it is not known
	tried int        // number of them at the last search
	usual uint64     // a bias that is likely; 0 if there is none

	weighed [readings]weighing // of the frames of the kind Offsetted
	reading reading            // of these
	unread  bool               // no reading agrees with the file, or several do
	unseen  bool               // the file could not be read

	sizes map[sizedName]sized // of the functions of a kernel that were looked up
}

// fail notes that the file has no call before addr, or no code there.
func (v *verdict) fail(addr uint64) {
	if len(v.failed) < maxFailures && !slices.Contains(v.failed, addr) {
		v.failed = append(v.failed, addr)
	}
}

// verdictOf returns the verdict of f's module, nil if it has no module or there are too many.
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

// verdictFor returns the verdict with this key, and opens its file if it is new. It returns nil if
// there are too many.
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

// address returns the address of f as the file has it, not adjusted. derived is set if it is that of
// f's symbol, because the line has no other number.
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
// symbol is one of syms. The symbol counts more than the bias, which may be that of another process
// that writes to the same log. If the address is not a whole number of pages away from the symbol,
// the file is not the one that ran.
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
