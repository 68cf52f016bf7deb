package judge

import (
	"debug/elf"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

const (
	// maxGap bounds the bytes between the end of a function and the next one: functions are aligned
	// to 16 or 32 bytes.
	maxGap = 32

	// names and sizes of functions cached for a file; a kernel has 60,000 functions
	maxSized = 1 << 16
)

// A sizedName is the name of a function and its size as the kernel logs it: the distance to the
// next symbol.
type sizedName struct {
	name string
	size uint64
}

// A sized is a function in a file that has a logged name and size. If no function or several have
// them, err is set.
type sized struct {
	addr, size uint64 // address of its code in the file; size is 0 if unknown
	unsure     bool   // the size proves nothing
	machine    elf.Machine
	err        error
}

// maxKnown bounds the kernel frames whose locations are remembered.
const maxKnown = 1 << 12

// A known stores the locations of frames that were judged in one kernel. The keys of places are
// Frame.Key.
type known struct {
	release string
	id      buildid.ID
	places  map[uint64]Place
	refuted bool // a file was refuted
}

// PlaceKnown sets the Place of f to an earlier result. It reports whether the Trace has judged the
// same kernel frame before.
func (t *Trace) PlaceKnown(f *Frame) bool {
	if f.Kernel == nil || f.Key == 0 || len(t.known.places) == 0 || f.Kernel.Release != t.known.release || f.Kernel.ID != t.known.id {
		return false
	}
	place, ok := t.known.places[f.Key]
	f.Place = place
	return ok
}

// identifyModules gives the frames of a kernel module the build ID of another frame in the trace. A
// kernel prints the ID in a call trace, but not on the line with RIP.
func identifyModules(frames []*Frame) {
	var ids map[string]buildid.ID // zero for a module with several builds
	for _, f := range frames {
		if f.Kernel == nil || f.Module == dialect.KernelImage || f.ID.IsZero() {
			continue
		}
		if ids == nil {
			ids = make(map[string]buildid.ID)
		}
		if id, ok := ids[f.Module]; !ok && len(ids) < maxModules {
			ids[f.Module] = f.ID
		} else if id != f.ID {
			ids[f.Module] = buildid.ID{}
		}
	}
	if ids == nil {
		return
	}
	for _, f := range frames {
		if f.Kernel != nil && f.ID.IsZero() {
			if id := ids[f.Module]; !id.IsZero() {
				f.ID, f.Key = id, 0 // the text alone does not identify the file
			}
		}
	}
}

// rememberPlace keeps the Place of f for PlaceKnown, unless a later frame may prove the file.
func (t *Trace) rememberPlace(f *Frame) {
	if f.Kernel == nil || f.Key == 0 || f.Kernel.Release == "" {
		return
	}
	if f.Place.Err == ErrUnproven {
		return // a later frame may provide the proof
	}
	k := &t.known
	if f.Kernel.Release != k.release || f.Kernel.ID != k.id || len(k.places) >= maxKnown {
		*k = known{release: f.Kernel.Release, id: f.Kernel.ID, places: make(map[uint64]Place)}
	}
	if err := f.Place.Err; (err == ErrSize || err == ErrCode || err == ErrRefuted) && !k.refuted {
		clear(k.places) // earlier locations in that file were not certain either
		k.refuted = true
	}
	k.places[f.Key] = f.Place
}

// runInKernel checks f, a frame in a kernel or in one of its modules. For a named function, the
// proof is a function of the logged name and size in the file. For a bare address, see
// runAtAddress.
func (c *check) runInKernel(f *Frame) {
	if f.Kind == dialect.InKernel {
		c.runAtAddress(f)
		return
	}
	s := c.of.sizedSymbol(&f.Symbol)
	if s.err == ErrSizes {
		s = c.of.ofSeveral(f)
	}
	if c.err = s.err; s.err != nil {
		if s.err == ErrSize || s.err == ErrNoSym && !isMadeAtRun(f.Symbol.Name) {
			c.of.refuted = ErrSize
		}
		return
	}
	if !s.unsure {
		c.agree()
	}
	value, call := f.Value, f.Call
	switch s.machine {
	case elf.EM_ARM:
		value &^= 1 // bit 0 of a return address marks Thumb code
		fallthrough
	case elf.EM_MIPS:
		// the title of a warning has a return address on these machines
		if call == dialect.Either {
			call = dialect.Return
		}
	}
	offset := value
	if call == dialect.Return {
		if offset == 0 { // the address of a function itself, not a return address in it
			c.err = ErrPadding
			return
		}
		offset--
	}
	if s.size != 0 && offset >= s.size {
		c.err = ErrPadding
		return
	}
	c.addr, c.lookup = s.addr+value, s.addr+offset
	if call == dialect.Return && value == s.size && !c.endsInCall() {
		c.err = ErrPadding
		return
	}
	if !s.unsure {
		c.verified = BySymbol
	}
	c.compareListed(f)
}

// endsInCall reports whether the code before c.addr, the end of a function, may be a call to a
// function that does not return. If not, the address belongs to the next function.
func (c *check) endsInCall() bool {
	yes, known := false, false
	c.of.image.visit(func(file *object.File) { yes, known = file.CallEndsAt(c.addr) })
	return yes || !known
}

// isMadeAtRun reports whether the running kernel makes functions with this name. No file has such
// functions.
func isMadeAtRun(name string) bool { return strings.HasPrefix(name, "bpf_") }

func (v *verdict) sizedSymbol(s *dialect.Symbol) (found sized) {
	key := sizedName{s.Name, s.Size}
	if found, ok := v.sizes[key]; ok {
		return found
	}
	if !v.image.visit(func(file *object.File) { found = sizedIn(file, s, v.image.symbolsNamed(file, s.Name)) }) {
		return sized{err: ErrUnproven}
	}
	if v.sizes == nil || len(v.sizes) >= maxSized {
		v.sizes = make(map[sizedName]sized)
	}
	v.sizes[key] = found
	return found
}

// sizedIn returns the function of this name and size in a file. all are the symbols with its name.
func sizedIn(file *object.File, s *dialect.Symbol, all []object.Symbol) (found sized) {
	found.err = ErrNoSym
	if len(all) > 0 {
		found.err = ErrSize
	}
	for i := range all {
		sym := &all[i]
		fits, unsure := isOfSize(file, sym, s.Size)
		if !fits {
			continue
		}
		if found.err == nil {
			return sized{err: ErrSizes}
		}
		found = sized{addr: sym.Addr, size: sym.Size, unsure: unsure, machine: file.Machine}
	}
	return found
}

// isOfSize reports whether size, which the kernel logs, may be the distance from sym to the
// kernel's next symbol. unsure is set if a match proves nothing. The last function of a section may
// have any larger size: the file does not show which section follows. The kernel may omit the next
// symbol of the file, a label, and use a later one.
func isOfSize(file *object.File, sym *object.Symbol, size uint64) (fits, unsure bool) {
	if !file.ExecCovers(sym.Addr) {
		return false, false
	}
	next, ok := file.NextSymbol(sym, sym.Addr)
	switch distance := next - sym.Addr; {
	case !ok:
		return size >= sym.Size, true
	case distance == size:
		return true, false
	case distance > size || size < sym.Size || size-sym.Size >= maxGap:
		return false, false
	}
	next, ok = file.NextSymbol(sym, sym.Addr+size-1)
	return ok && next-sym.Addr == size, true
}
