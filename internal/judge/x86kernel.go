package judge

import (
	"debug/elf"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// IsX86Kernel reports whether the sections of the file at path show a Linux kernel or kernel module
// for x86-64. It returns false for a file that cannot be read, or is compressed.
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
