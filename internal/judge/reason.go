package judge

import (
	"errors"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
)

// Reasons why a frame is not located.
var (
	ErrOtherID   = errors.New("the file and the log have different build IDs for the module")
	ErrNoModule  = errors.New("the trace does not name the module of the address; give --image FILE if the program contains the address, or log /proc/self/maps with the trace")
	ErrNoProgram = errors.New("the trace does not name the program's file, which contains the address; --image FILE names the file")
	ErrNoBias    = errors.New("the address is a runtime address, and neither maps nor other frames show where the module was loaded; log /proc/self/maps, or give --image FILE@BASE")
	ErrNotCode   = errors.New("the file has no code at this place: either another file ran, or the frame is outside the code")
	ErrStray     = errors.New("the file has no code at this address, though other frames show that this file ran: the frame is outside the code")
	ErrSymbol    = errors.New("the file has the symbol at another place: another file ran")
	ErrCall      = errors.New("in the file, no call precedes this return address: another file ran")
	ErrWithin    = errors.New("in the file, no instruction begins at this address: another file ran")
	ErrFault     = errors.New("no call precedes this address: either a signal interrupted the frame, and the file with the signal's trampoline is missing, or another file ran")
	ErrCode      = errors.New("the code in the file differs from the code in the log: another file ran")
	ErrOutside   = errors.New("none of the files that --image names has code at this address")
	ErrNoCode    = errors.New("none of the files that --image names has code at this address, though other frames are in them: either the program jumped to a wrong address, or the code is in ROM")
	ErrWords     = errors.New("an AVR address may be in bytes or in two-byte words: no call shows the unit of the log")
	ErrRefuted   = errors.New("other frames of the trace show that another file ran; --image NAME=FILE names the right file")
	ErrUnproven  = errors.New("the frames of the trace are too few to prove that this file ran; --image NAME=FILE names the file")
	ErrYounger   = errors.New("the file was changed after the log was written, and the frames of the stack are too few to prove that the file ran; --image NAME=FILE names the file that ran")
	ErrTitle     = errors.New("the log names the program without its folder; --image NAME=FILE names the file")
	ErrOldMaps   = errors.New("the maps are of an earlier trace, and too few frames agree with them; log /proc/self/maps with the trace")
	ErrSeveral   = errors.New("frames of several processes are mixed, so it is not known which frames a signal interrupted")
	ErrManySym   = errors.New("the file has several symbols of this name")
	ErrNoSym     = errors.New("the file has no symbol of this name")
	ErrSize      = errors.New("the file has no function of this name and size: another file ran")
	ErrSizes     = errors.New("the file has several functions of this name and size")
	ErrPadding   = errors.New("the address is after the code of the function, so no call precedes it")
	ErrKernel    = errors.New("this machine has no debug file for this kernel; give --image vmlinux for the kernel, and --image MODULE=FILE for a module")
	ErrNoKernel  = errors.New("the log does not name the kernel's release; --image vmlinux names the kernel's file")
	ErrNoLib     = errors.New("no file of this name is in the program's folder or in a system folder; --image NAME=FILE names the file")
	ErrSigned    = errors.New("a signed return address (AArch64 pointer authentication): the program must strip the signature (xpaclri) before it prints the address")
)

// A SeveralError reports that an address is in two files, so its frame is not located.
type SeveralError struct{ First, Second string }

// Error returns a message with both paths, and with the flag that names the right file.
func (e *SeveralError) Error() string {
	return "the address is in " + e.First + " and in " + e.Second + ", and nothing shows which of the two ran; --image FILE names the file"
}

// ErrBudget is the reason why a frame is not located if the time for the log ran out before its
// file was searched.
var ErrBudget = errors.New("the file was not searched: the time for the log is used up (0.2 s, and 0.4 s for each MiB of the log); log /proc/self/maps or build IDs, or give --image FILE@BASE, to make a search unnecessary")

// neverLocated returns the reason why f cannot be located, whatever else the log has, or nil.
func neverLocated(f *Frame) error {
	if f.Unread != nil {
		return f.Unread
	}
	const kernel = 0xff // highest byte of kernel addresses
	if upper := f.Addr >> 48; f.Kind == dialect.Runtime && upper != 0 && upper>>8 != kernel {
		return ErrSigned
	}
	return notELF(f.Module)
}

// notELF returns the reason why frames of a module with this name are not located, or nil if the
// module may be an ELF file.
func notELF(module string) error {
	switch {
	case strings.HasSuffix(module, ".dylib"), strings.Contains(module, ".framework/"), strings.Contains(module, ".app/Contents/MacOS/"):
		return dialect.ErrMachO
	case strings.HasSuffix(module, ".dll"), strings.HasSuffix(module, ".exe"), len(module) > 3 && module[1] == ':' && module[2] == '\\':
		return dialect.ErrPE
	case strings.HasSuffix(module, ".wasm"):
		return dialect.ErrWasm
	}
	return nil
}
