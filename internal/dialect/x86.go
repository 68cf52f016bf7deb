package dialect

import (
	"debug/elf"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// IsX86Kernel reports whether the file at path is a kernel of Linux for x86-64 or a module of one. It reads
// the headers. A file that cannot be read, or has to be unpacked, is not one.
func IsX86Kernel(path string) (yes bool) {
	file, err := buildid.OpenRegular(path, "images")
	if err != nil {
		return false
	}
	defer file.Close()
	err = object.Guard(func() {
		f, err := object.Open(file, file.Size(), file.OS())
		if err != nil {
			return
		}
		defer f.Close()
		_, kernel := f.Section("__ksymtab")
		_, module := f.Section(".modinfo")
		yes = (kernel || module) && f.Machine == elf.EM_X86_64
	})
	return yes && err == nil
}

// IsCounter reports whether the three letters at at, which are "rip" or "eip" in any case, may be the name
// of the register before its value. If [Reader.OnX86] is set, other lines need not be read for firmware.
func IsCounter(b []byte, at int) bool {
	end := at + len("rip")
	if at > 0 && isLetter(b[at-1]) && !colorEnds(b, at) || isWordAt(b, end) {
		return false
	}
	end = blanksAfter(b, end)
	return hasAt(b, end, ")") || hasAt(b, end, ":") || hasAt(b, end, "=") || hasAt(b, end, "/x1=") || hasAt(b, end, "\x1b")
}
