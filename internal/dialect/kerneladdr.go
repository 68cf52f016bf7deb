package dialect

import "bytes"

// Kernel addresses without names: the kernel was built without CONFIG_KALLSYMS, or the address is
// in none of its functions.
//
//	RIP: 0010:0xffffffff8120a1b2
//	 0xffffffff8120a279
//	 ? 0xffffffffc0378000
//	pc : 0xffff80001008a1b2
//	lr : 0xffff80001008a1a0
//
// A relocated kernel logs the distance from its link address only at a panic:
//
//	Kernel Offset: 0x33600000 from 0xffffffff81000000 (relocation range: …)
//	Kernel Offset: disabled

// A KernelLoad is the relocation of a kernel when it started (KASLR). Later lines of the log set
// it, so the frames' Reader owns it.
type KernelLoad struct {
	Offset uint64 // added to addresses in the file
	From   uint64 // lowest address in the file; 0 if unknown
	Known  bool
}

const (
	kernelHalf   = 0xffff // the highest 16 bits of 64-bit kernel addresses
	modulesStart = 0xffffffffc0000000
	maxToOffset  = 64 // lines between a frame and the distance; a panic logs it after the registers
)

// returnMarks are the texts before a register's value that is a return address.
var returnMarks = [][]byte{[]byte("lr : "), []byte("LR is at "), []byte("ra : ")}

func matchKernelAddress(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := kernelAddress(b, at)
	if !ok {
		return false
	}
	call, unsure, ok := kernelCall(b, at)
	if !ok {
		return false
	}
	k := r.kernelOf(b[:at])
	if call == Return && k.Named().Release == "" {
		return false // the log may not be from Linux
	}
	f := l.frame()
	f.Kind, f.Value, f.Call, f.Module = InKernel, addr, call, KernelImage
	f.Kernel, f.Unsure = k, unsure
	f.Load = r.kernel.loadOf(r.number)
	f.Start, f.Inline = at, InlineMarked
	l.after(f, end)
	if call == Exact {
		r.awaitCode(f)
	}
	if !f.Load.Known && addr < modulesStart {
		r.holdsUntil = max(r.holdsUntil, r.number+maxToOffset)
	}
	return true
}

// kernelAddress parses the kernel address at the given offset, and returns its end. ok is false if
// other text follows, and for error codes, which have the highest values.
func kernelAddress(b []byte, at int) (addr uint64, end int, ok bool) {
	addr, end, ok = prefixedHex(b, at)
	if !ok || end-at != len("0x")+16 || addr>>48 != kernelHalf || addr>>24 == 1<<40-1 {
		return 0, at, false
	}
	return addr, end, onlyBlanks(b, end) || string(b[end:]) == "\r"
}

// kernelCall returns the kind of the address at the given offset according to the text before it.
// unsure is set for an address after "?". ok is false if the text rules out kernel code.
func kernelCall(b []byte, at int) (call Call, unsure, ok bool) {
	before := b[:at]
	if at > 0 && b[at-1] == ':' {
		seg := segment(b, at)
		// 0033 and 0023 are segments of processes
		return Exact, false, seg != "" && seg != "0033" && seg != "0023"
	}
	if endsWithAny(before, exactBefore) {
		return Exact, false, true
	}
	if endsWithAny(before, returnMarks) {
		return Return, false, true
	}
	last := blanksBefore(b, at)
	if last == at && at > 0 {
		return Return, false, false
	}
	if last > 0 && b[last-1] == '?' {
		unsure = true
		last = blanksBefore(b, last-1)
	}
	return Return, unsure, last == 0 || bytes.IndexByte([]byte("]>:;"), b[last-1]) >= 0
}

// ofKernel marks f, the frame for a register's value, as a possible frame of the kernel. It does so
// only if the value may be a kernel address and the log names a Linux kernel. It clears f.Addr: if
// the kernel was relocated, the value is not an address in the file.
func (r *Reader) ofKernel(f *Frame) {
	if f.Value>>48 != kernelHalf {
		return
	}
	k := r.kernelOf(nil)
	if k.Named().Release == "" {
		return
	}
	f.Kind, f.Addr, f.Module, f.Kernel, f.Load = InKernel, 0, KernelImage, k, r.kernel.loadOf(r.number)
	f.Unsure = true
}

func endsWithAny(b []byte, texts [][]byte) bool {
	for _, text := range texts {
		if bytes.HasSuffix(b, text) {
			return true
		}
	}
	return false
}

// loadOf returns the KernelLoad for the line with this number. After more than WindowLines lines
// without a frame, it returns a new KernelLoad, since another kernel may have logged the line.
func (n *kernelLog) loadOf(line int64) *KernelLoad {
	if n.load == nil || line-n.loadAt > WindowLines {
		n.load = new(KernelLoad)
	}
	n.loadAt = line
	return n.load
}

// kernelOffset reads the distance in "Kernel Offset: …", for the frames before it.
func kernelOffset(r *Reader, b []byte, at int) {
	if r.inPast || r.kernel.load == nil {
		return
	}
	at += len(offsetMark)
	if hasAt(b, at, "disabled") {
		*r.kernel.loadOf(r.number) = KernelLoad{Known: true}
		return
	}
	offset, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, " from 0x") {
		return
	}
	if from, _, ok := prefixedHex(b, end+len(" from ")); ok {
		*r.kernel.loadOf(r.number) = KernelLoad{offset, from, true}
	}
}

const offsetMark = "Kernel Offset: "

// addressBefore returns the kernel address in brackets before the function that begins at b[from],
// or 0: "[<ffffffff8120a1b2>] ? vfs_write+0xc7/0x3f0".
func addressBefore(b []byte, from int) uint64 {
	end := blanksBefore(b, from)
	if end > 0 && b[end-1] == '?' {
		end = blanksBefore(b, end-1)
	}
	if !endsWith(b, end, ">]") || end < 20 {
		return 0
	}
	addr, stop, ok := hexAt(b, end-18)
	if !ok || stop != end-2 || !endsWith(b, end-18, "[<") || addr>>48 != kernelHalf {
		return 0
	}
	return addr
}
