package valgrind

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// page is what load biases are multiples of: the smallest page of any machine.
const page = 4096

// files are the object files that a report names, each opened once.
type files struct {
	o      *Options
	byName map[string]*file
	kept   int // bytes of what the report says of them
}

// keep reports whether there is room for another fact of so many bytes.
func (fs *files) keep(size int) bool {
	if fs.kept+size > maxFacts {
		return false
	}
	fs.kept += size
	return true
}

// A file is an object file at the place where a report says that it was.
type file struct {
	path     string // as opened
	id       buildid.ID
	err      error // why it cannot be used
	opened   *buildid.File
	elf      *object.File
	code     []object.Segment // that are executed
	loads    []object.Segment
	from, to uint64 // of the loads, all together
	ours     bool   // it is Valgrind's: what it preloads

	size      int                        // bytes of its symbol tables
	functions map[string][]object.Symbol // by the name in the report
	variables map[string][]object.Symbol
}

// of returns the file of an object by its name in the report.
func (fs *files) of(name string) *file {
	if f := fs.byName[name]; f != nil {
		return f
	}
	f := &file{path: fs.o.located(name), ours: strings.HasPrefix(base(name), "vgpreload_")}
	if fs.byName == nil {
		fs.byName = make(map[string]*file)
	}
	if len(fs.byName) >= maxOpen {
		f.err = fmt.Errorf("not opened: the report names more than %d files", maxOpen)
		return f
	}
	fs.byName[name] = f
	if fs.o.NoPaths {
		f.err = errors.New("not opened (--no-paths)")
		return f
	}
	f.open()
	return f
}

// located returns where the file of this name is on this machine.
func (o *Options) located(name string) string {
	return buildid.PrefixMaps(o.PrefixMap).Place(name, o.Sysroot)
}

func (f *file) open() {
	if !filepath.IsAbs(f.path) || len(f.path) > maxPath {
		f.err = errors.New("this is no absolute path")
		return
	}
	if f.opened, f.err = buildid.OpenRegular(f.path, "the report"); f.err != nil {
		f.err = withoutPath(f.err)
		return
	}
	f.safely(func() {
		if f.elf, f.err = object.Open(f.opened, f.opened.Size(), f.opened.OS()); f.err != nil {
			return
		}
		f.id, _ = buildid.Read(f.opened, f.opened.Size())
		for _, s := range f.elf.Segments() {
			if s.Type != elf.PT_LOAD || s.MemSize == 0 || s.Addr+s.MemSize < s.Addr {
				continue
			}
			if len(f.loads) == 0 || s.Addr < f.from {
				f.from = s.Addr
			}
			f.to = max(f.to, s.Addr+s.MemSize)
			f.loads = append(f.loads, s)
			if s.Flags&elf.PF_X != 0 {
				f.code = append(f.code, s)
			}
		}
		for _, s := range f.elf.Sections() {
			if s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_DYNSYM {
				f.size += int(min(s.Size, maxSymbols*24))
			}
		}
		if len(f.code) == 0 {
			f.err = errors.New("it has no code")
		}
	})
}

// withoutPath says why a file could not be opened.
func withoutPath(err error) error {
	var system *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoFile
	case errors.As(err, &system):
		return system.Err
	}
	return err
}

// safely calls use, which reads from the mapping: another process may cut the
// file short meanwhile.
func (f *file) safely(use func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e, ok := recover().(runtime.Error); ok {
			f.err = fmt.Errorf("it changed while it was read: %w", e)
		}
	}()
	use()
}

func (fs *files) close() {
	for _, f := range fs.byName {
		if f.elf != nil {
			f.elf.Close()
		}
		if f.opened != nil {
			f.opened.Close()
		}
	}
	fs.byName = nil
}

// covers reports whether the segments have addr.
func covers(segments []object.Segment, addr uint64) bool {
	for i := range segments {
		if s := &segments[i]; addr-s.Addr < s.MemSize {
			return true
		}
	}
	return false
}

// overlaps reports whether two files lie in the same place at these biases.
func overlaps(a *file, biasA uint64, b *file, biasB uint64) bool {
	if a.from+biasA >= b.to+biasB || b.from+biasB >= a.to+biasA {
		return false
	}
	for i := range a.loads {
		for j := range b.loads {
			x, y := &a.loads[i], &b.loads[j]
			if x.Addr+biasA < y.Addr+biasB+y.MemSize && y.Addr+biasB < x.Addr+biasA+x.MemSize {
				return true
			}
		}
	}
	return false
}

// overlaps reports whether two objects cannot have been at their places at once.
func (e *epoch) overlaps(other *epoch) bool {
	return e != other && overlaps(e.of.file, e.bias, other.of.file, other.bias)
}

// Files finds the objects of a report that have no build ID: by their path,
// which NewMarkup and NewReport give to the symbolizer as their name. It is a
// finder for Options.Symbolizer.
type Files struct{}

// Find returns the file at q.Name, if q has no ID and that is the absolute path
// of a regular file.
func (Files) Find(_ context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	if !q.ID.IsZero() || !filepath.IsAbs(q.Name) {
		return nil, fs.ErrNotExist
	}
	f, err := buildid.OpenRegular(q.Name, "the report")
	if err != nil && note != nil && !errors.Is(err, context.Canceled) {
		note(buildid.Attempt{Where: q.Name, Said: err.Error()})
	}
	return f, err
}

// find looks for symbols that Valgrind shows as fn: by their own name, with or
// without a version, demangled or not, or decoded from that of a replacement.
func (f *file) find(fn string, demangle func(string) string) (all []object.Symbol) {
	same := map[string]bool{fn: true}
	if fn == "(below main)" {
		same = belowMain
	}
	word := []byte(identifier(fn))
	spaced := closed(fn)
	tries := 0
	f.each(func(name []byte, s object.Symbol) {
		if bytes.HasPrefix(name, []byte("_vg")) {
			if n, ok := replaced(string(name)); ok {
				name = []byte(n)
			}
		}
		if len(all) >= maxNames || fn != "(below main)" && !bytes.Contains(name, word) {
			return
		}
		plain, _, _ := bytes.Cut(name, []byte("@"))
		is := same[string(name)] || same[string(plain)]
		if !is && len(name) > 2 && name[0] == '_' && tries < maxDemangled {
			tries++
			is = closed(demangle(string(plain))) == spaced
		}
		if is {
			all = append(all, s)
		}
	})
	if tries == maxDemangled { // there may be more
		all = nil
	}
	return all
}

// closed returns a demangled name as newer demanglers write it: without blanks
// between the ends of templates.
func closed(fn string) string {
	for strings.Contains(fn, "> >") {
		fn = strings.ReplaceAll(fn, "> >", ">>")
	}
	return fn
}

// belowMain are the functions that Valgrind calls "(below main)".
var belowMain = map[string]bool{
	"(below main)": true, "__libc_start_main": true, "__libc_start_main_impl": true, "__libc_start_call_main": true,
	"generic_start_main": true, "generic_start_main.isra.0": true, "_start": true, "__libc_start_main@@GLIBC_2.34": true,
}

// identifier returns the last identifier of a function's name, which the
// mangled form has, too; "" where it is not plain.
func identifier(fn string) string {
	if i := strings.Index(fn, "operator"); i >= 0 {
		return ""
	}
	if strings.HasPrefix(fn, "_Z") {
		return fn
	}
	fn = strings.ReplaceAll(fn, "(anonymous namespace)::", "")
	word, depth := make([]byte, 0, len(fn)), 0
	for i := range len(fn) {
		switch c := fn[i]; {
		case c == '<':
			depth++
		case c == '>':
			depth--
		case depth > 0:
		case c == '(' || c == '[' || c == '@':
			return string(word)
		case c == ' ' || c == ':' || c == '~': // of all that comes before
			word = word[:0]
		default:
			word = append(word, c)
		}
	}
	return string(word)
}

// replaced returns which function the symbol of a replacement, as
// _vgr10010ZU_libcZdsoZa_malloc, replaces.
func replaced(name string) (string, bool) {
	if !strings.HasPrefix(name, "_vg") || len(name) < 12 || name[3] != 'r' && name[3] != 'w' {
		return "", false
	}
	rest := name[4:]
	i := strings.IndexByte(rest, 'Z')
	if i < 0 || i+2 >= len(rest) || rest[i+2] != '_' {
		return "", false
	}
	encoded := rest[i+1] == 'Z'
	_, fn, ok := strings.Cut(rest[i+3:], "_") // behind the soname, which has no '_' of its own
	if encoded {
		fn = decodeZ(fn)
	}
	return fn, ok
}

// decodeZ decodes the names of replacements (include/pub_tool_redir.h).
func decodeZ(s string) string {
	const letters, means = "acpsuhdDALRBZ", "*:+/_-. @()%Z" // each letter, and what it stands for
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == 'Z' && i+1 < len(s) {
			if j := strings.IndexByte(letters, s[i+1]); j >= 0 {
				b.WriteByte(means[j])
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// each calls visit for each function in the symbol tables: all of an address,
// not only the best.
func (f *file) each(visit func(name []byte, s object.Symbol)) {
	sections := f.elf.Sections()
	for i := range sections {
		s := &sections[i]
		if s.Type != elf.SHT_SYMTAB && s.Type != elf.SHT_DYNSYM || int(s.Link) >= len(sections) {
			continue
		}
		table, err := f.elf.DataOf(i)
		if err != nil {
			continue
		}
		names, err := f.elf.DataOf(int(s.Link))
		if err != nil {
			continue
		}
		order := f.elf.Order
		size := 16
		if f.elf.Class == elf.ELFCLASS64 {
			size = 24
		}
		for n := 0; len(table) >= size && n < maxSymbols; n, table = n+1, table[size:] {
			var sym object.Symbol
			var info byte
			var section uint16
			if size == 24 {
				info, section = table[4], order.Uint16(table[6:])
				sym.Addr, sym.Size = order.Uint64(table[8:]), order.Uint64(table[16:])
			} else {
				sym.Addr, sym.Size = uint64(order.Uint32(table[4:])), uint64(order.Uint32(table[8:]))
				info, section = table[12], order.Uint16(table[14:])
			}
			sym.Type = elf.ST_TYPE(info)
			at := uint64(order.Uint32(table))
			if section == 0 || sym.Type > elf.STT_FUNC && sym.Type != elf.STT_GNU_IFUNC || at == 0 || at >= uint64(len(names)) {
				continue
			}
			name := names[at:min(uint64(len(names)), at+maxPath)]
			if end := bytes.IndexByte(name, 0); end > 0 {
				sym.Name = name[:end]
				visit(sym.Name, sym)
			}
		}
	}
}
