// Command reduce makes the fixture of a log of a kernel from its vmlinux:
//
//	go run reduce.go VMLINUX LOG OUT
//
// OUT has the build ID of VMLINUX, the symbols of the functions in the log and of those that follow
// them, the lines of these functions, and their entries with those of the calls inlined into them.
// It has no code and no types. For each frame llvm-symbolizer-19 must have the same answer in both
// files.
package main

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var frame = regexp.MustCompile(`([\w.$]+)\+0x([0-9a-f]+)/0x([0-9a-f]+)( \[)?`)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: reduce VMLINUX LOG OUT")
		os.Exit(2)
	}
	if err := reduce(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "reduce:", err)
		os.Exit(1)
	}
}

func reduce(vmlinux, log, out string) error {
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	file, err := elf.Open(vmlinux)
	if err != nil {
		return err
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		return err
	}
	data, err := file.DWARF()
	if err != nil {
		return err
	}
	functions, kept, questions := inLog(file, symbols, string(text))

	dir, err := os.MkdirTemp("", "reduce")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	list := filepath.Join(dir, "symbols")
	if err := os.WriteFile(list, []byte(strings.Join(kept, "\n")), 0o600); err != nil {
		return err
	}
	options := []string{"--only-keep-debug", "--remove-section=.debug_*", "--remove-section=.BTF*", "--strip-all",
		"--strip-symbol=$a", "--strip-symbol=$d", "--strip-symbol=$t", "--strip-symbol=$x", "--keep-symbols=" + list}
	w := &writer{file: file, data: data, functions: functions, abbrevs: make(map[string]uint64)}
	if err := w.writeUnits(); err != nil {
		return err
	}
	sections := map[string]*bytes.Buffer{
		".debug_info": &w.info, ".debug_abbrev": &w.abbrev, ".debug_ranges": &w.ranges, ".debug_rnglists": &w.rnglists, ".debug_line": &w.line,
	}
	bare := filepath.Join(dir, "bare")
	if err := run("llvm-objcopy-19", append(options, vmlinux, bare)...); err != nil {
		return err
	}
	options = nil
	for name, b := range sections {
		if b.Len() > 0 {
			if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
				return err
			}
			options = append(options, "--add-section="+name+"="+filepath.Join(dir, name))
		}
	}
	slices.Sort(options)
	if err := run("llvm-objcopy-19", append(options, bare, out)...); err != nil {
		return err
	}
	if err := blank(out); err != nil {
		return err
	}
	return compare(vmlinux, out, questions)
}

// inLog returns the functions with names in a log, the names of these and of what follows them, and
// the addresses of the frames.
func inLog(file *elf.File, symbols []elf.Symbol, log string) (functions [][2]uint64, kept []string, questions string) {
	var starts []uint64
	of, at := make(map[string][]uint64), make(map[uint64][]string)
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || s.Section >= elf.SHN_LORESERVE || strings.HasPrefix(s.Name, "$") || strings.HasPrefix(s.Name, ".L") {
			continue
		}
		if file.Machine == elf.EM_ARM && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			s.Value &^= 1 // the mark of Thumb code
		}
		starts = append(starts, s.Value)
		of[s.Name] = append(of[s.Name], s.Value)
		at[s.Value] = append(at[s.Value], s.Name)
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	var b strings.Builder
	for _, m := range frame.FindAllStringSubmatch(log, -1) {
		offset, _ := strconv.ParseUint(m[2], 16, 64)
		for _, start := range of[m[1]] {
			i, _ := slices.BinarySearch(starts, start+1)
			if i == len(starts) {
				continue
			}
			functions = append(functions, [2]uint64{start, starts[i]})
			kept = append(append(kept, at[start]...), at[starts[i]]...)
			fmt.Fprintf(&b, "%#x\n", start+max(offset, 1)-1)
			if start+offset < starts[i] {
				fmt.Fprintf(&b, "%#x\n", start+offset)
			}
		}
	}
	return functions, kept, b.String()
}

// A writer writes the entries of functions.
type writer struct {
	file                                        *elf.File
	data                                        *dwarf.Data
	functions                                   [][2]uint64
	info, abbrev, ranges, rnglists, line, entry bytes.Buffer
	abbrevs                                     map[string]uint64 // their codes
	version                                     int               // of the current unit
	unit                                        int               // its offset in info
	at                                          map[dwarf.Offset]int
	refs                                        map[int]dwarf.Offset // by offset in info
	files                                       []uint64             // new numbers of the files of the current unit
}

// A node is an entry that is kept.
type node struct {
	*dwarf.Entry
	children []*node
}

func (w *writer) overlaps(ranges [][2]uint64) bool {
	for _, r := range ranges {
		for _, f := range w.functions {
			if f[0] < r[1] && r[0] < f[1] {
				return true
			}
		}
	}
	return false
}

// writeUnits writes the units with functions of the log.
func (w *writer) writeUnits() error {
	info, err := w.file.Section(".debug_info").Data()
	if err != nil {
		return err
	}
	r := w.data.Reader()
	for {
		unit, err := r.Next()
		if unit == nil || err != nil {
			break
		}
		ranges, err := w.data.Ranges(unit)
		if err != nil {
			return err
		}
		if !w.overlaps(ranges) {
			r.SkipChildren()
			continue
		}
		all := make(map[dwarf.Offset]*node)
		root := &node{Entry: unit}
		if unit.Children {
			if err := w.read(r, root, all); err != nil {
				return err
			}
		}
		w.version = 4
		if at := int(unit.Offset) - 12; at >= 0 && binary.LittleEndian.Uint16(info[at+4:]) == 5 && int(binary.LittleEndian.Uint32(info[at:])) > 8 && info[at+6] == 1 {
			w.version = 5
		}
		stmt := int64(w.line.Len())
		if err := w.writeLines(unit); err != nil {
			return err
		}
		w.writeUnit(root, all, stmt)
	}
	w.abbrev.WriteByte(0)
	if b := w.rnglists.Bytes(); len(b) > 0 {
		binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	}
	return nil
}

// read reads the children of an entry. Blocks are left out, their children are kept.
func (w *writer) read(r *dwarf.Reader, parent *node, all map[dwarf.Offset]*node) error {
	for {
		e, err := r.Next()
		if err != nil {
			return err
		}
		if e == nil || e.Tag == 0 {
			return nil
		}
		n := &node{Entry: e}
		into := n
		switch e.Tag {
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			all[e.Offset] = n
			ranges, _ := w.data.Ranges(e)
			if e.Tag == dwarf.TagInlinedSubroutine || w.overlaps(ranges) {
				parent.children = append(parent.children, n)
			}
		case dwarf.TagLexDwarfBlock:
			into = parent
		default:
			if e.Children {
				r.SkipChildren()
			}
			continue
		}
		if e.Children {
			if err := w.read(r, into, all); err != nil {
				return err
			}
		}
	}
}

// origins adds the functions that entries refer to.
func origins(n *node, all map[dwarf.Offset]*node, root *node, added map[dwarf.Offset]bool) {
	for _, attr := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		if o, ok := n.Val(attr).(dwarf.Offset); ok && !added[o] && all[o] != nil {
			added[o] = true
			if !slices.Contains(root.children, all[o]) {
				all[o].children = nil
				root.children = append(root.children, all[o])
			}
			origins(all[o], all, root, added)
		}
	}
	for _, c := range n.children {
		origins(c, all, root, added)
	}
}

func (w *writer) writeUnit(root *node, all map[dwarf.Offset]*node, stmt int64) {
	origins(root, all, root, make(map[dwarf.Offset]bool))
	w.unit, w.at, w.refs = w.info.Len(), make(map[dwarf.Offset]int), make(map[int]dwarf.Offset)
	w.put(&w.info, 4, 0)
	w.put(&w.info, 2, uint64(w.version))
	if w.version == 5 {
		w.info.Write([]byte{1, byte(w.address())})
		w.put(&w.info, 4, 0)
	} else {
		w.put(&w.info, 4, 0)
		w.info.WriteByte(byte(w.address()))
	}
	w.write(root, stmt)
	b := w.info.Bytes()
	binary.LittleEndian.PutUint32(b[w.unit:], uint32(len(b)-w.unit-4))
	for at, to := range w.refs {
		binary.LittleEndian.PutUint32(b[at:], uint32(w.at[to]-w.unit))
	}
}

func (w *writer) address() int {
	if w.file.Class == elf.ELFCLASS64 {
		return 8
	}
	return 4
}

func (w *writer) put(b *bytes.Buffer, size int, v uint64) {
	b.Write(binary.LittleEndian.AppendUint64(nil, v)[:size])
}

// Forms of DWARF.
const (
	formAddr      = 0x01
	formString    = 0x08
	formUdata     = 0x0f
	formRef4      = 0x13
	formSecOffset = 0x17
)

// write writes an entry and its children.
func (w *writer) write(n *node, stmt int64) {
	w.at[n.Offset] = w.info.Len()
	form := binary.AppendUvarint(nil, uint64(n.Tag))
	form = append(form, 0)
	if len(n.children) > 0 {
		form[len(form)-1] = 1
	}
	var values bytes.Buffer
	refs := make(map[int]dwarf.Offset)
	add := func(attr dwarf.Attr, kind byte) {
		form = append(binary.AppendUvarint(form, uint64(attr)), kind)
	}
	for _, attr := range []dwarf.Attr{dwarf.AttrName, dwarf.AttrCompDir, dwarf.AttrLinkageName} {
		if s, ok := n.Val(attr).(string); ok {
			add(attr, formString)
			values.WriteString(s + "\x00")
		}
	}
	for _, attr := range []dwarf.Attr{dwarf.AttrLanguage, dwarf.AttrInline, dwarf.AttrCallFile, dwarf.AttrCallLine, dwarf.AttrCallColumn} {
		if v, ok := n.Val(attr).(int64); ok {
			if attr == dwarf.AttrCallFile && v < int64(len(w.files)) {
				v = int64(w.files[v])
			}
			add(attr, formUdata)
			values.Write(binary.AppendUvarint(nil, uint64(v)))
		}
	}
	for _, attr := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		if o, ok := n.Val(attr).(dwarf.Offset); ok {
			add(attr, formRef4)
			refs[values.Len()] = o
			w.put(&values, 4, 0)
		}
	}
	if n.Tag == dwarf.TagCompileUnit {
		add(dwarf.AttrStmtList, formSecOffset)
		w.put(&values, 4, uint64(stmt))
	}
	ranges, _ := w.data.Ranges(n.Entry)
	switch {
	case len(ranges) == 1 && n.Tag != dwarf.TagCompileUnit:
		add(dwarf.AttrLowpc, formAddr)
		add(dwarf.AttrHighpc, formAddr)
		w.put(&values, w.address(), ranges[0][0])
		w.put(&values, w.address(), ranges[0][1])
	case len(ranges) > 0:
		if n.Tag == dwarf.TagCompileUnit {
			add(dwarf.AttrLowpc, formAddr) // the base of ranges
			w.put(&values, w.address(), 0)
		}
		add(dwarf.AttrRanges, formSecOffset)
		w.put(&values, 4, w.writeRanges(ranges))
	}
	form = append(form, 0, 0)
	code, ok := w.abbrevs[string(form)]
	if !ok {
		code = uint64(len(w.abbrevs) + 1)
		w.abbrevs[string(form)] = code
		w.abbrev.Write(binary.AppendUvarint(nil, code))
		w.abbrev.Write(form)
	}
	w.info.Write(binary.AppendUvarint(nil, code))
	for at, to := range refs {
		w.refs[w.info.Len()+at] = to
	}
	w.info.Write(values.Bytes())
	for _, c := range n.children {
		w.write(c, stmt)
	}
	if len(n.children) > 0 {
		w.info.WriteByte(0)
	}
}

// writeLines writes the lines of the functions of a unit as a table of DWARF 4.
func (w *writer) writeLines(unit *dwarf.Entry) error {
	r, err := w.data.LineReader(unit)
	if err != nil || r == nil {
		return errors.Join(err, errors.New("no line table"))
	}
	var rows []dwarf.LineEntry
	for {
		var row dwarf.LineEntry
		if err := r.Next(&row); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	numbers := make(map[string]uint64)
	var names bytes.Buffer
	w.files = nil
	for _, f := range r.Files() {
		if f == nil {
			w.files = append(w.files, 0)
			continue
		}
		if numbers[f.Name] == 0 {
			numbers[f.Name] = uint64(len(numbers) + 1)
			name := f.Name // to which debug/dwarf joins the folder even if it is absolute
			if dir, _ := unit.Val(dwarf.AttrCompDir).(string); strings.HasPrefix(name, dir+"/src/") {
				name = name[len(dir):]
			}
			names.WriteString(name + "\x00\x00\x00\x00") // no folder, time or size
		}
		w.files = append(w.files, numbers[f.Name])
	}

	header := []byte{1, 1, 1, 0, 1, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1} // no special operations but the first
	header = append(header, 0)                                     // no folders
	header = append(append(header, names.Bytes()...), 0)
	var program bytes.Buffer
	for _, f := range slices.Compact(w.sorted()) {
		w.writeRows(&program, rows, f, numbers)
	}
	w.put(&w.line, 4, uint64(2+4+len(header)+program.Len()))
	w.put(&w.line, 2, 4)
	w.put(&w.line, 4, uint64(len(header)))
	w.line.Write(header)
	w.line.Write(program.Bytes())
	return nil
}

func (w *writer) sorted() [][2]uint64 {
	all := slices.Clone(w.functions)
	slices.SortFunc(all, func(a, b [2]uint64) int { return slices.Compare(a[:], b[:]) })
	return all
}

// writeRows writes the rows of a table for the function f.
func (w *writer) writeRows(b *bytes.Buffer, rows []dwarf.LineEntry, f [2]uint64, numbers map[string]uint64) {
	const copyRow, advancePC, advanceLine, setFile, setColumn = 1, 2, 3, 4, 5
	open, at, line := false, uint64(0), 1
	end := func(to uint64) {
		b.Write(binary.AppendUvarint([]byte{advancePC}, to-at))
		b.Write([]byte{0, 1, 1}) // the end of the sequence
		open = false
	}
	for i := 0; i+1 < len(rows); i++ {
		row, next := &rows[i], &rows[i+1]
		if open && next.EndSequence && next.Address == row.Address {
			end(row.Address)
		}
		if row.EndSequence || next.Address <= f[0] || row.Address >= f[1] || next.Address <= row.Address {
			continue
		}
		from := max(row.Address, f[0])
		if !open {
			b.Write([]byte{0, byte(1 + w.address()), 2}) // set the address
			w.put(b, w.address(), from)
			open, at, line = true, from, 1
		}
		b.Write(binary.AppendUvarint([]byte{advancePC}, from-at))
		b.WriteByte(advanceLine)
		b.Write(signed(int64(row.Line - line)))
		b.Write(binary.AppendUvarint([]byte{setFile}, numbers[row.File.Name]))
		b.Write(binary.AppendUvarint([]byte{setColumn}, uint64(row.Column)))
		b.WriteByte(copyRow)
		at, line = from, row.Line
		if to := min(next.Address, f[1]); next.EndSequence || to == f[1] {
			end(to)
		}
	}
}

// signed returns v in the signed LEB128 format.
func signed(v int64) (b []byte) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// writeRanges writes ranges and returns their offset.
func (w *writer) writeRanges(ranges [][2]uint64) (at uint64) {
	if w.version < 5 {
		at = uint64(w.ranges.Len())
		for _, r := range append(ranges, [2]uint64{}) {
			w.put(&w.ranges, w.address(), r[0])
			w.put(&w.ranges, w.address(), r[1])
		}
		return at
	}
	const startEnd = 6
	if w.rnglists.Len() == 0 {
		w.put(&w.rnglists, 4, 0)
		w.put(&w.rnglists, 2, 5)
		w.rnglists.Write([]byte{byte(w.address()), 0, 0, 0, 0, 0})
	}
	at = uint64(w.rnglists.Len())
	for _, r := range ranges {
		w.rnglists.WriteByte(startEnd)
		w.put(&w.rnglists, w.address(), r[0])
		w.put(&w.rnglists, w.address(), r[1])
	}
	w.rnglists.WriteByte(0)
	return at
}

// blank clears the bytes of an ELF file that belong to nothing, which llvm-objcopy has left.
func blank(name string) error {
	image, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	out := make([]byte, len(image))
	keep := func(from, size uint64) { copy(out[from:from+size], image[from:]) }
	headers, size := uint64(binary.LittleEndian.Uint32(image[0x20:])), uint64(40)
	if file.Class == elf.ELFCLASS64 {
		headers, size = binary.LittleEndian.Uint64(image[0x28:]), 64
	}
	keep(0, 64+uint64(len(file.Progs))*56)
	keep(headers, size*uint64(len(file.Sections)))
	for _, s := range file.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL {
			keep(s.Offset, s.FileSize)
		}
	}
	return os.WriteFile(name, out, 0o600)
}

// compare reports whether llvm-symbolizer has the same answers for addresses in both files.
func compare(full, reduced, questions string) error {
	var answers [2][]string
	for i, name := range []string{full, reduced} {
		command := exec.Command("llvm-symbolizer-19", "--obj="+name)
		command.Stdin = strings.NewReader(questions)
		answer, err := command.Output()
		if err != nil {
			return err
		}
		answers[i] = strings.Split(string(answer), "\n\n")
	}
	all, other := strings.Fields(questions), 0
	for i, question := range all {
		if strings.HasSuffix(answers[0][i], ":0:0") && strings.HasSuffix(answers[1][i], ":0:0") {
			continue // the symbol table alone has the name
		}
		if withoutName(answers[0][i]) != withoutName(answers[1][i]) {
			if other++; other <= 3 {
				fmt.Fprintf(os.Stderr, "%s: %s\n-- reduced:\n%s\n", question, answers[0][i], answers[1][i])
			}
		}
	}
	if other > 0 || len(all) == 0 {
		return fmt.Errorf("%d of %d addresses have another answer in the reduced file", other, len(all))
	}
	return nil
}

// withoutName returns an answer without the name of the function itself, which llvm-symbolizer may
// take from a local label in the symbol table.
func withoutName(answer string) string {
	lines := strings.Split(strings.TrimSpace(answer), "\n")
	if n := len(lines); n >= 2 {
		lines = slices.Delete(lines, n-2, n-1)
	}
	return strings.Join(lines, "\n")
}

func run(program string, args ...string) error {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", program, err), errors.New(string(out)))
	}
	return nil
}
