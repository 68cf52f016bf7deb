package filter

import (
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/internal/report"
)

// kernelFile returns the file of a kernel or kernel module. It searches by build ID, then among the
// operator's Images, then in the folders of the kernel's release.
func kernelFile(t *tracer, f *dialect.Frame) *judge.Image {
	var m *judge.Image
	if !f.ID.IsZero() {
		if m = t.imageByID(f); m.Err == nil {
			return m
		}
	}
	for i := range t.opt.Images {
		if g := &t.opt.Images[i]; g.isForKernel(f.Module) {
			// the build ID of a compressed module is known only after the file is opened
			if given := t.imageOfOperator(g); f.ID.IsZero() || given.Err == nil && given.ID == f.ID {
				return given
			}
		}
	}
	release := f.Kernel.Named().Release
	if release == "" {
		if m == nil {
			m = &judge.Image{Path: f.Module, Err: judge.ErrNoKernel}
		}
		return m
	}
	for _, place := range kernelPlaces(t, f.Module, release) {
		if t.opt.NoPaths {
			return &judge.Image{Path: place, Err: report.ErrNoPaths}
		}
		found := t.imageAt(place)
		if found.Err == nil && (f.ID.IsZero() || found.ID == f.ID) {
			return found
		}
		if m == nil || m.Err != nil && found.Err != report.ErrNoFile && f.ID.IsZero() {
			m = found
		}
	}
	if m == nil || m.Err == report.ErrNoFile {
		m = &judge.Image{Path: f.Module, Err: judge.ErrKernel}
	}
	return m
}

// kernelPlaces returns the possible paths of a module's file for a kernel release.
func kernelPlaces(t *tracer, module, release string) (places []string) {
	if module == dialect.KernelImage {
		return []string{
			"/usr/lib/debug/boot/vmlinux-" + release,
			"/lib/modules/" + release + "/build/vmlinux",
			"/usr/lib/debug/lib/modules/" + release + "/vmlinux",
			"/boot/vmlinux-" + release,
		}
	}
	return t.modules.places(func(name string) string {
		return prefixmap.Maps(t.opt.PrefixMap).Place(name, t.opt.Sysroot)
	}, module, release)
}
