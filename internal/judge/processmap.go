package judge

import (
	"path"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dialect"
)

// A ProcessMap is a mapping of code in a process of this machine that wrote the log. Unlike a
// mapping in a log, it is certain unless its address is predictable.
type ProcessMap struct {
	Start  uint64 // address of the first byte of the mapping
	Offset uint64 // offset of that byte in the file
	Base   uint64 // address of the first page of the file
	Bias   uint64 // difference between an address in the process and in the file
	Path   string
	ID     buildid.ID // build ID of the mapped file; zero if it has none
	PID    int

	// Predictable is set if the address does not identify the process: see filter.ProcessMapping.
	// A process whose maps were never read may have another file there.
	Predictable bool

	// Open returns the mapped file if it has no build ID.
	Open func() *Image
}

// askProcess sets the module of f by the process's maps, if the log has neither its build ID nor
// its load base. A predictable address has to be proved first: see proveMaps.
func (t *Trace) askProcess(f *Frame, facts *dialect.Facts) {
	if t.Mapped == nil || f.Addr == 0 || f.Data || f.mapped || f.live != nil || f.Kernel != nil || !f.ID.IsZero() || !f.Prefix.IsZero() {
		return
	}
	if fact, ok := facts.Module(f.Module); ok && (fact.HasBase || fact.Text != 0) {
		return
	}
	m := t.Mapped(f.Addr)
	if m == nil || !m.has(f) {
		return
	}
	if m.Predictable {
		f.likely = m
		return
	}
	f.setMap(m)
}

// setMap sets the module of f to the file of a mapping.
func (f *Frame) setMap(m *ProcessMap) {
	if f.Module == "" {
		f.Module = m.Path
	}
	f.live, f.ID = m, m.ID
}

// has reports whether f may be in the mapped file. A number in f besides the address must agree
// with the mapping. Without such a number, a module name must be the file's.
func (m *ProcessMap) has(f *Frame) bool {
	switch {
	case f.Module == "" && f.Kind == dialect.Runtime:
		return true
	case f.Kind == dialect.Runtime:
		return Stem(path.Base(m.Path)) == Stem(ProgramName(f.Module))
	case f.Kind == dialect.BaseOffset, f.Kind == dialect.Vaddr, f.Kind == dialect.FileOffset, f.Kind == dialect.FileOrRuntime:
		return f.Value == f.Addr-m.Base || f.Value == f.Addr-m.Bias || f.Value == f.Addr-m.Start+m.Offset
	}
	return false
}
