package judge

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// A verdict holds the evidence of a trace about one module.
type verdict struct {
	// module fields of the first frame that named the module; see verdictOfModule
	first dialect.Frame
	// path of a file that was tried for frames without a module; empty if a frame has named the
	// file
	unnamed string
	image   *Image
	file    sum // identity of the image
	bias    uint64
	biased  bool // bias is known
	moved   bool // frames have different biases: several processes write to the log
	proved  bool
	refuted error
	all     Evidence  // evidence of all frames
	here    *Evidence // evidence of the current stack
	stack   int       // number of that stack
	load    int       // see moduleKey

	seen  []sighting // addresses that the bias must explain, until it is known
	tried int        // length of seen at the last search
	cut   bool       // the limit of the work cut the search short
	usual uint64     // a bias that is likely; 0 if unknown

	voted     int       // number of return addresses at the last inference of the bias
	inferred  bool      // calls have shown bias
	inference Inference // evidence of the calls for bias

	weighed [readings]weighing // counts of the Offsetted frames, by meaning of their numbers
	reading reading            // chosen meaning of Offsetted numbers
	unread  bool               // no meaning agrees with the file, or several do
	unseen  bool               // the file could not be read

	loads map[*dialect.KernelLoad]*moved // load addresses of kernels

	sizes map[sizedName]sized // functions of a kernel that were looked up
}

// evidence returns the evidence about the file from the stack with this number. It drops the
// evidence from the previous stack.
func (v *verdict) evidence(stack int) *Evidence {
	if v.here == nil || v.stack != stack {
		v.here, v.stack = new(Evidence), stack
	}
	return v.here
}

// verdictOf returns the verdict on f's module, and opens its file if the module is new. A module
// that several processes have loaded has a verdict for each load address, and f's address selects
// one. The verdict is nil if f is already judged or has no module, or if the trace has too many
// modules.
func (t *Trace) verdictOf(f *Frame) *verdict {
	if f.Place.Verified != "" || f.Place.Err != nil || f.Module == "" && f.ID.IsZero() && !f.Program {
		return nil
	}
	key := keyOf(f.Frame)
	if f.live != nil {
		key.base = f.live.Base
	}
	for v := t.modules[key]; v != nil; v = t.modules[key] {
		if !v.elsewhere(f) || key.load == maxLoads-1 {
			return v
		}
		key.load++
	}
	return t.verdictOfModule(key, f.Frame, f.live)
}

// keyOf returns the key of f's module with load and base 0: see moduleKey.
func keyOf(f *dialect.Frame) moduleKey {
	key := moduleKey{process: f.Process, id: f.ID}
	if f.Prefix.Len() >= sureID {
		key.prefix = f.Prefix
	}
	if !f.ID.IsZero() {
		return key
	}
	key.name = f.Module
	if f.Kernel != nil {
		// a module of another release has another file
		key.name += " of " + f.Kernel.Named().Release
	}
	return key
}

// verdictOfModule returns the verdict with this key. For a new verdict, it opens the file of f's
// module. p is the module's mapping in its process, or nil if unknown. The result is nil if the
// trace has too many modules.
func (t *Trace) verdictOfModule(key moduleKey, f *dialect.Frame, p *ProcessMap) *verdict {
	return t.verdictFor(key, func(v *verdict) *Image {
		v.first = dialect.Frame{LoggedPlace: dialect.LoggedPlace{Module: f.Module, ID: f.ID, Prefix: f.Prefix, Addr: f.Addr, Program: f.Program, Deleted: f.Deleted}}
		if p != nil && p.ID.IsZero() {
			return p.Open()
		}
		m := t.Open(f)
		if m.Err == nil && !f.Prefix.IsZero() && !bytes.HasPrefix(m.ID.Bytes(), f.Prefix.Bytes()) {
			return &Image{Path: m.Path, Err: ErrOtherID}
		}
		return m
	})
}

// verdictFor returns the verdict with this key. For a new verdict, it calls open for the file. It
// returns nil if the trace has too many modules.
func (t *Trace) verdictFor(key moduleKey, open func(v *verdict) *Image) *verdict {
	v := t.modules[key]
	if v == nil && len(t.modules) < maxModules {
		v = new(verdict)
		v.image = open(v)
		v.image.names = names{demangle: t.Demangle, memory: t.remembered(), quota: t.quota()}
		t.quota().Spend(stepsPerModule)
		v.file = about(v.image).sum()
		if t.modules == nil {
			t.modules = make(map[moduleKey]*verdict)
		}
		v.load = key.load
		t.modules[key] = v
	}
	return v
}

// address returns the unadjusted address of f in the file. derived is set if only f's symbol gave
// the address.
func (v *verdict) address(f *Frame) (addr uint64, derived bool, err error) {
	if addr, ok := numbered(v.image, f); ok {
		return addr, false, nil
	}
	var syms []object.Symbol
	if !f.Symbol.Inside {
		syms = v.image.symbols(f.Symbol.Name)
	}
	if f.Kind == dialect.InSymbol && v.image.Visit != nil {
		syms = v.image.visitedSymbols(f.Symbol.Name)
	}
	switch {
	case f.Kind == dialect.FileOffset, f.Kind == dialect.CodeOffset, f.Kind == dialect.FileOrRuntime:
		return 0, false, ErrNotCode
	case f.Kind == dialect.Runtime:
		addr, err = v.runtime(f, syms)
		return addr, false, err
	case len(syms) == 0:
		return 0, false, ErrNoSym
	case len(syms) > 1:
		return 0, false, ErrManySym
	}
	return syms[0].Addr + uint64(f.Symbol.Offset), true, nil
}

// runtime returns the address in the file for a frame with an address in the process. syms are the
// file's symbols with the name in the log. They take precedence over the bias, which may be from
// another process. If symbols exist, but none gives a bias of whole pages, the file did not run.
func (v *verdict) runtime(f *Frame, syms []object.Symbol) (uint64, error) {
	if len(syms) == 0 {
		switch {
		case v.biased && !v.moved:
		case v.cut:
			return 0, ErrBudget
		default:
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

// judgeGiven refutes an operator's file that is not forced, if the trace has failures and no facts
// for the file. Facts are return addresses after a call, and frames that agree with a symbol or
// with listed code.
func (v *verdict) judgeGiven() {
	if m := v.image; m.Given && !m.Forced && v.refuted == nil && len(v.all.Called)+v.all.Symbols == 0 && len(v.all.Failed) > 0 {
		v.refuted = ErrCall
	}
}
