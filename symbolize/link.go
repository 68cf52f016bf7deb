package symbolize

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/symindex"
)

// parts are the files that a module reads in addition to its own.
type parts struct {
	// a stripped program's link to its debug file; Name is empty for other files
	link fileLink
	// the supplementary file of the module's debug information; name is empty without one
	sup supplement
	alt *part // the open supplementary file; nil: none
	// the program whose symbols are used; nil if the debug file's symbols are used
	table *part
	// paths of files whose folders are searched for related files
	near []string

	oldTable bool  // the program's symbols are used even if the debug file has some
	splitFDs int64 // open descriptors of split units' files
	counted  int   // files of split units that the ledger has counted
}

// A part is an open file and its ELF object.
type part struct {
	file *buildid.File // nil if the object needs no descriptor
	obj  *object.File
}

// openFiles counts the open files of a module.
type openFiles struct {
	mapped int64 // all open files
	byFD   int64 // open files that keep a descriptor
}

// openPart reads file's headers and takes ownership of file; on error it closes file. It fails if
// the named sections would take too much memory when inflated.
func openPart(file *buildid.File, o *Options, names []string) (*part, error) {
	p := &part{file: file}
	room := o.room
	room.SpillDir = ""
	obj, err := openObject(file, room)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p.obj = obj
	var cost int64
	for _, name := range names {
		cost += obj.HeapCost(name)
	}
	if limit := min(o.MaxMemory-o.MaxMemory/spareShare, maxPart); cost > limit {
		p.close()
		return nil, fmt.Errorf("inflating the file needs %d MiB of memory, but the limit is %d; decompress the file on disk (objcopy --decompress-debug-sections)", cost>>20, limit>>20)
	}
	if p.file, err = release(file, obj); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *part) close() error {
	if p == nil {
		return nil
	}
	var errs []error
	if p.obj != nil {
		errs = append(errs, p.obj.Close())
	}
	if p.file != nil {
		errs = append(errs, p.file.Close())
	}
	return errors.Join(errs...)
}

func (p *part) footprint() int64 {
	if p == nil {
		return 0
	}
	return p.obj.Footprint()
}

func (p *parts) footprint() int64 { return p.alt.footprint() + p.table.footprint() }

func (n *openFiles) add(p *part) {
	if p == nil {
		return
	}
	n.mapped++
	if p.file != nil && !contentsOf(p.file).Whole() {
		n.byFD++
	}
}

func (m *module) openFiles() (n openFiles) {
	n.add(&part{m.file, m.obj})
	n.add(m.alt)
	n.add(m.table)
	n.mapped += int64(m.linked())
	n.byFD += m.splitFDs
	return n
}

func (m *module) linked() int {
	if m.dw == nil {
		return 0
	}
	return m.dw.Linked()
}

// closeParts closes all files but m's own.
func (m *module) closeParts() error {
	if m.dw != nil {
		m.dw.Close()
	}
	err := errors.Join(m.alt.close(), m.table.close())
	m.alt, m.table = nil, nil
	return err
}

func (m *module) symbolObject() *object.File {
	if m.table != nil {
		return m.table.obj
	}
	return m.obj
}

// borrow makes m use the symbols of o, the stripped file of the same build. It does so if m has no
// symbols, or if LLVM would use the symbols of o. Then it moves o's open file into m. The caller
// closes o afterwards.
func (m *module) borrow(o *module) {
	has := func(obj *object.File) bool {
		s, ok := obj.Section(".symtab")
		return ok && s.Size > 0 && s.Type != elf.SHT_NOBITS
	}
	if o == nil || m == o || m.dw == nil || m.table != nil || o.obj == nil || o.dw != nil || !m.oldTable && (o.holds == Nothing || has(m.obj)) {
		return
	}
	m.closeCrew()
	m.table = &part{o.file, o.obj}
	o.file, o.obj = nil, nil
	m.closeIndex() // the index has the symbols of m's own file
	m.source = symindex.Source{}
}

// A fileLink is the content of .gnu_debuglink in a program.
type fileLink struct {
	Name string // name of the debug file, without a folder; untrusted
	CRC  uint32 // checksum of all bytes of that file
}

// A debugLink is the fileLink of a stripped program, with the program's path.
type debugLink struct {
	fileLink
	near string // path of the program
}

// linkedFiles finds debug files and supplementary files: see [access.BuildID].
type linkedFiles interface {
	// FindLink returns the debug file of the program at near, with this name and the checksum crc.
	// It looks where GDB does, and also below dirs. Unless id is zero, it skips files with another
	// build ID.
	FindLink(ctx context.Context, name string, crc uint32, near string, dirs []string, id buildid.ID, note func(buildid.Attempt)) (*buildid.File, error)

	// FindAlt returns the supplementary file with the build ID id. name is the path that the debug
	// file at near records for it.
	FindAlt(ctx context.Context, id buildid.ID, name, near string, dirs []string, note func(buildid.Attempt)) (*buildid.File, error)
}

func linked() linkedFiles { return access.BuildID(nil).(linkedFiles) }

// followLink searches this machine, once, for the debug file in a stripped file's link. It keeps
// that file if it is the best one. It reports whether that file has debug information.
func (x *search) followLink() bool {
	s := x.s
	if x.followed || x.link.Name == "" || s.ctx.Err() != nil {
		return false
	}
	x.followed = true
	file, err := linked().FindLink(s.ctx, x.link.Name, x.link.CRC, x.link.near, s.o.LinkDirs, x.e.key.id, x.note)
	if err != nil {
		return false // noted by FindLink
	}
	m, err := x.open(file)
	if err != nil {
		return false
	}
	m.near = append(m.near, x.link.near)
	m.oldTable = s.o.Reaching
	x.supplement(m)
	x.keep(m)
	return m.dw != nil
}

// drop stops using m's debug information, and stores the reason fault in m.
func (m *module) drop(fault error) {
	m.closeCrew()
	if m.dw != nil {
		m.dw.Close()
	}
	m.dw, m.fault = nil, fault
}

// A supplement refers to the file into which dwz moved the entries and strings that several files
// share. The fields are read from a file that refers to it, and are not checked.
type supplement struct {
	name string // path of the supplementary file; may be hostile
	id   []byte // build ID of the supplementary file
	sum  []byte // with DWARF 5 instead of id: a checksum recorded in both files
}

// readLinks reads m's references to other files; m.file must be open.
func (m *module) readLinks() {
	m.near = []string{m.path}
	m.link.Name, m.link.CRC, _ = m.obj.DebugLink()
	var ok bool
	if m.sup.name, m.sup.id, ok = m.obj.AltLink(); !ok {
		m.sup.name, m.sup.sum, _ = readSup(m.obj, false)
	}
}

// maxSup bounds a .debug_sup section, in bytes: it holds a path and a checksum.
const maxSup = 8 << 10

// readSup reads .debug_sup (DWARF 5, 7.3.6): the name of the supplementary file and its checksum.
// With isSup, obj must be the supplementary file itself, otherwise a file that refers to one.
func readSup(obj *object.File, isSup bool) (name string, sum []byte, ok bool) {
	s, ok := obj.Section(".debug_sup")
	if !ok || s.Size > maxSup || s.Flags&elf.SHF_COMPRESSED != 0 {
		return "", nil, false
	}
	b, err := obj.Data(".debug_sup")
	if err != nil || len(b) < 4 || obj.Order.Uint16(b) != 5 || (b[2] == 1) != isSup {
		return "", nil, false
	}
	text, rest, ok := bytes.Cut(b[3:], []byte{0})
	n, used := binary.Uvarint(rest)
	if !ok || used <= 0 || n == 0 || n > uint64(len(rest)-used) {
		return "", nil, false
	}
	return string(text), bytes.Clone(rest[used:][:n]), true
}

// supplement opens the supplementary file of m's debug information, if m refers to one. If the file
// is missing, m is still used, and m.fault names the missing file.
func (x *search) supplement(m *module) {
	if m.dw == nil || m.sup.name == "" || x.s.o.NoAlt {
		return
	}
	var p *part
	err := guard(func() (err error) {
		p, err = x.findSupplement(m)
		return err
	})
	if err != nil {
		m.fault = fmt.Errorf("the supplementary file %.200q, which names functions, is missing: %w", m.sup.name, err)
		return
	}
	m.alt = p
	m.dw.UseAlt(p.obj)
}

// altSections are the sections of a supplementary file that lookups read.
var altSections = []string{".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets"}

func (x *search) findSupplement(m *module) (*part, error) {
	s := x.s
	if m.sup.sum != nil {
		return x.findSum(m)
	}
	id, err := buildid.FromBytes(m.sup.id)
	if err != nil {
		return nil, err
	}
	file, err := linked().FindAlt(s.ctx, id, m.sup.name, m.path, s.o.LinkDirs, x.note)
	for _, finder := range slices.Concat(s.o.Finders, s.o.Servers) {
		if err == nil || s.ctx.Err() != nil {
			break
		}
		file, err = finder.Find(s.ctx, buildid.Query{ID: id, Kind: buildid.Alt, Name: m.sup.name}, x.note)
	}
	if err != nil {
		return nil, err
	}
	return openPart(file, &s.o, altSections)
}

// findSum finds m's supplementary file by its path and by the checksum in .debug_sup: the file has
// no build ID.
func (x *search) findSum(m *module) (*part, error) {
	places := []string{m.sup.name}
	if !filepath.IsAbs(m.sup.name) {
		places = places[:0]
		for _, dir := range foldersOf(m.near) {
			places = append(places, filepath.Join(dir, m.sup.name))
		}
	}
	for _, path := range places {
		var p *part
		file, openErr := buildid.OpenRegular(path, "supplementary file")
		if openErr == nil {
			p, openErr = openPart(file, &x.s.o, altSections)
		}
		if openErr != nil {
			x.note(buildid.Attempt{Where: path, Reason: reason(openErr)})
			continue
		}
		if _, sum, ok := readSup(p.obj, true); ok && bytes.Equal(sum, m.sup.sum) {
			return p, nil
		}
		x.note(buildid.Attempt{Where: path, Reason: "not the supplementary file of this program: the ID in its .debug_sup differs"})
		p.close()
	}
	return nil, &NotFoundError{Name: m.sup.name}
}

// foldersOf returns the directories of paths, as given and with symbolic links resolved.
func foldersOf(paths []string) []string {
	var dirs []string
	for _, path := range realPaths(paths) {
		if dir := filepath.Dir(path); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// realPaths returns paths, followed by the same paths with symbolic links resolved.
func realPaths(paths []string) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(all, real) {
			all = append(all, real)
		}
	}
	return all
}
