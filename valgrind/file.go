package valgrind

import (
	"bytes"
	"debug/elf"
	"strings"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/report"
)

// page is the smallest page size of any machine, in bytes. Load biases are multiples of it.
const page = 4096

// files holds the object files of a report, each opened once.
type files struct {
	objects *report.Objects
	byName  map[string]*file
	kept    int // bytes of the facts about all files
}

// keepBytes adds the size of another fact, in bytes, to fs.kept. It returns false, and adds
// nothing, if the sum would exceed maxFacts.
func (fs *files) keepBytes(size int) bool {
	if fs.kept+size > maxFacts {
		return false
	}
	fs.kept += size
	return true
}

// A file is an object file that a report names.
type file struct {
	*report.Object
	from, to uint64 // addresses of the first loaded byte and after the last one
	ours     bool   // a preloaded library of Valgrind

	size      int                        // bytes of its symbol tables
	functions map[string][]object.Symbol // functions found so far, by name in the report
	variables map[string][]object.Symbol // variables found so far, by name in the report
}

func (fs *files) named(name string) *file {
	if f := fs.byName[name]; f != nil {
		return f
	}
	f := &file{Object: fs.objects.Named(name), ours: strings.HasPrefix(baseName(name), "vgpreload_")}
	if f.Err == report.ErrTooMany {
		return f
	}
	if fs.byName == nil {
		fs.byName = make(map[string]*file)
	}
	fs.byName[name] = f
	if f.Err != nil {
		return f
	}
	f.from = f.Loads[0].Addr
	for _, s := range f.Loads {
		f.from, f.to = min(f.from, s.Addr), max(f.to, s.Addr+s.MemSize)
	}
	for _, s := range f.Image.Sections() {
		if s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_DYNSYM {
			f.size += int(min(s.Size, maxSymbols*24))
		}
	}
	return f
}

// safely calls use, which reads from the mapped file. It sets f.Err if the file is truncated during
// the call.
func (f *file) safely(use func()) {
	if err := object.Guard(use); err != nil {
		f.Err = err
	}
}

func (fs *files) close() {
	fs.objects.Close()
	fs.byName = nil
}

// overlaps reports whether two files at these biases share an address.
func overlaps(a *file, biasA uint64, b *file, biasB uint64) bool {
	if a.from+biasA >= b.to+biasB || b.from+biasB >= a.to+biasA {
		return false
	}
	for i := range a.Loads {
		for j := range b.Loads {
			x, y := &a.Loads[i], &b.Loads[j]
			if x.Addr+biasA < y.Addr+biasB+y.MemSize && y.Addr+biasB < x.Addr+biasA+x.MemSize {
				return true
			}
		}
	}
	return false
}

// overlaps reports whether the objects of two epochs share an address, so that they cannot have
// been loaded at the same time.
func (e *epoch) overlaps(other *epoch) bool {
	return e != other && overlaps(e.of.file, e.bias, other.of.file, other.bias)
}

// findSymbols returns at most maxNames symbols that Valgrind prints as fn. The symbol's name may
// have a version, may be mangled, or may be the name of Valgrind's replacement for fn. If the
// search demangles maxDemangled names, findSymbols returns no symbols, since some may be missing.
func (f *file) findSymbols(fn string, demangle func(string) string) (all []object.Symbol) {
	same := func(name string) bool { return name == fn }
	if fn == report.BelowMain {
		same = report.IsBelowMain
	}
	word := []byte(identifier(fn))
	spaced := report.Closed(fn)
	tries := 0
	for s := range f.Image.AllSymbols() {
		name := s.Name[:min(len(s.Name), maxPath)]
		if bytes.HasPrefix(name, []byte("_vg")) {
			if n, ok := replacedName(string(name)); ok {
				name = []byte(n)
			}
		}
		if len(all) >= maxNames || fn != report.BelowMain && !bytes.Contains(name, word) {
			continue
		}
		plain, _, _ := bytes.Cut(name, []byte("@"))
		is := same(string(name)) || same(string(plain))
		if !is && len(name) > 2 && name[0] == '_' && tries < maxDemangled {
			tries++
			is = report.Closed(demangle(string(plain))) == spaced
		}
		if is {
			all = append(all, s)
		}
	}
	if tries == maxDemangled {
		all = nil
	}
	return all
}

// identifier returns the last identifier in a function's name. The mangled name contains the same
// identifier. If fn is a mangled name, identifier returns fn, and for an operator it returns "".
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
		case c == ' ' || c == ':' || c == '~': // a type or a scope ends
			word = word[:0]
		default:
			word = append(word, c)
		}
	}
	return string(word)
}

// replacedName returns the name of the function that a symbol in Valgrind's libraries replaces. For
// example, it returns malloc for _vgr10010ZU_libcZdsoZa_malloc.
func replacedName(name string) (string, bool) {
	if !strings.HasPrefix(name, "_vg") || len(name) < 12 || name[3] != 'r' && name[3] != 'w' {
		return "", false
	}
	rest := name[4:]
	i := strings.IndexByte(rest, 'Z')
	if i < 0 || i+2 >= len(rest) || rest[i+2] != '_' {
		return "", false
	}
	encoded := rest[i+1] == 'Z'
	_, fn, ok := strings.Cut(rest[i+3:], "_") // after the soname, which has its '_' encoded
	if encoded {
		fn = decodeZ(fn)
	}
	return fn, ok
}

// decodeZ decodes the names of replacements (include/pub_tool_redir.h).
func decodeZ(s string) string {
	const letters, means = "acpsuhdDALRBZ", "*:+/_-. @()%Z" // letters after 'Z', and what they mean
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
