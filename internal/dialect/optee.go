package dialect

import "bytes"

// OP-TEE reports an application that it has stopped, or a fault of its kernel:
//
//	E/LD:  region  5: va 0x40012000 pa 0x00001000 size 0x00f000 flags r-xs [0]
//	E/LD:   [0] 5b9e0e40-2636-11e1-ad9e-0002a5d5c51b @ 0x40012000
//	E/LD:  Call stack:
//	E/LD:   0x4001a83c
//
// A file has the UUID of its application as its name, and is loaded as a whole at the address after
// the UUID. The kernel, tee.elf, is loaded at the "TEE load address". OP-TEE subtracts from return
// addresses, so all addresses in stacks are within calls.
var optee = Dialect{
	Name: "optee", Who: "OP-TEE: the call stacks of trusted applications and of its kernel",
	Needs:  "--image UUID=FILE for an application, --image tee.elf for the kernel",
	Sample: "E/LD:   0x4001a83c",
}

const opteeKernel = "tee.elf"

const opteeStack = "Call stack:"

// matchOPTEE matches a line with only an address after OP-TEE's prefix.
func matchOPTEE(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || !onlyBlanks(b, end) || !endsWith(b, at, " ") {
		return false
	}
	if text := ofOPTEE(b[:at]); len(text) == at || len(bytes.Trim(text, "? 0123456789")) > 0 {
		return false // only the processor and the thread may precede the address
	}
	r.readPast() // reads the load addresses
	f := l.frame()
	if f.Module = opteeKernel; !bytes.Contains(b[:at], []byte("/TC:")) {
		m, _ := r.facts.below(addr)
		f.Module = m.Name
	}
	f.Addr, f.Kind, f.Value, f.Call = addr, Runtime, addr, Adjusted
	if r.lineBeforeHas(opteeStack) {
		f.Number = 0
	}
	f.Start = at
	l.after(f, end)
	return true
}

// ofOPTEE returns the text of the OP-TEE message in b, without the level and TC (kernel) or LD
// (loader of applications). Without a message it returns b.
func ofOPTEE(b []byte) []byte {
	for _, mark := range []string{"/TC:", "/LD:"} {
		if i := bytes.Index(b, []byte(mark)); i > 0 && bytes.IndexByte([]byte("EIDFMU"), b[i-1]) >= 0 && standsFree(b, i-1) {
			return b[i+len(mark):]
		}
	}
	return b
}

// opteeFile reads the load address of a file from "[0] UUID @ 0xADDRESS".
func opteeFile(r *Reader, b []byte, at int) {
	const mark = " @ "
	addr, _, ok := prefixedHex(b, at+len(mark))
	from := bytes.LastIndexByte(b[:at], ' ') + 1
	if !ok || !isUUID(b[from:at]) || from < 2 || b[from-2] != ']' || len(ofOPTEE(b)) == len(b) {
		return
	}
	r.facts.AddModule(ModuleFact{Name: string(b[from:at]), Base: addr, HasBase: true})
}

// opteeLoad reads the load address of the kernel from "TEE load address @ 0xADDRESS".
func opteeLoad(r *Reader, b []byte, at int) {
	if addr, _, ok := prefixedHex(b, at+len("TEE load address @ ")); ok && len(ofOPTEE(b)) < len(b) {
		r.facts.AddModule(ModuleFact{Name: opteeKernel, Base: addr, HasBase: true})
	}
}

func isUUID(b []byte) bool {
	if len(b) != 36 {
		return false
	}
	for i, c := range b {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !isHex(c) {
			return false
		}
	}
	return true
}

// below returns the module with the highest base that is not above addr.
func (f *Facts) below(addr uint64) (m ModuleFact, ok bool) {
	for _, other := range f.modules {
		if other.HasBase && other.Base <= addr && (!ok || other.Base > m.Base) {
			m, ok = other, true
		}
	}
	return m, ok
}
