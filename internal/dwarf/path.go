package dwarf

import (
	"bytes"
	"slices"
	"unsafe"
)

// noFile replaces file numbers that do not fit in a lineRow. Real tables have fewer files.
const noFile = 0xffff

// A fileTable holds the directories and files of a line table. Paths are joined on demand.
type fileTable struct {
	read    bool
	defined bool // the line program ran, and the files it defines are in the table
	dirs    []strRef
	files   []fileEntry
	numbers []uint32 // indexed by file: index in paths, plus 1; 0 if the path is not joined yet
	paths   []path
	heap    int64 // bytes of the texts in paths
}

// A path is the path of a source file, with the ends of its parts.
type path struct {
	text string
	comp uint32 // bytes of text that are the compilation directory and its separator
	dir  uint32 // bytes of text before the name of the file

	plain bool // text is printable ASCII
	// text begins with directory 0 of a version 5 table, which is relative to the unit's directory
	loose bool
}

type fileEntry struct {
	name strRef
	dir  uint32
}

func (f *fileTable) footprint() int64 {
	return sizeOf(f.dirs) + sizeOf(f.files) + sizeOf(f.numbers) + sizeOf(f.paths) + f.heap
}

// readFiles reads the tables of directories and files in the header.
func (u *unit) readFiles() {
	t := &u.lines
	f := &t.files
	if f.read || !t.present {
		return
	}
	f.read = true
	c := t.header()
	if t.enc.version >= 5 {
		dirs := u.readEntries(&c, nil)
		for _, e := range dirs {
			f.dirs = append(f.dirs, e.name)
		}
		f.files = u.readEntries(&c, nil)
	} else {
		for c.left() > 0 && c.buf[c.pos] != 0 && len(f.dirs) < maxFiles {
			f.dirs = append(f.dirs, strRef{uint64(c.pos), secLine, true})
			c.skipString()
		}
		c.u8()
		for c.left() > 0 && c.buf[c.pos] != 0 && len(f.files) < maxFiles {
			f.files = append(f.files, readFile(&c, 0))
		}
	}
	u.d.spend(len(f.dirs) + len(f.files))
	if c.bad {
		u.damaged("line table at %#x: file table", u.stmtList.u)
	}
}

// readFile reads an entry of a file table of versions 2 to 4. base is the offset in .debug_line of
// the cursor's first byte.
func readFile(c *cursor, base uint64) fileEntry {
	e := fileEntry{name: strRef{base + uint64(c.pos), secLine, true}}
	c.skipString()
	e.dir = clamp(c.uleb())
	c.uleb() // time of last change
	c.uleb() // bytes of the file
	return e
}

// An entryFormat describes a field of the entries in a directory or file table of version 5.
type entryFormat struct {
	content uint64
	form    uint16
}

// entryFormats reads the header of a table of version 5. It returns the formats of the entries, in
// buf, and the number of entries.
func (u *unit) entryFormats(c *cursor, buf *[maxFormats]entryFormat) (formats []entryFormat, count uint64) {
	n := int(c.u8())
	if n > len(buf) {
		c.fail()
		return nil, 0
	}
	formats = buf[:n]
	for i := range formats {
		formats[i] = entryFormat{c.uleb(), uint16(min(c.uleb(), 0xffff))}
	}
	count = c.uleb()
	if count > uint64(c.left()) || count > maxFiles { // an entry takes at least a byte
		c.fail()
		return nil, 0
	}
	return formats, count
}

// readEntries reads a table of version 5: the formats of the entries, then the entries.
func (u *unit) readEntries(c *cursor, dst []fileEntry) []fileEntry {
	var buf [maxFormats]entryFormat
	formats, count := u.entryFormats(c, &buf)
	if c.bad {
		return dst
	}
	least := 0 // fewest bytes of an entry
	for _, f := range formats {
		least += max(1, formSize(f.form, u.lines.enc))
	}
	dst = slices.Grow(dst, min(int(count), c.left()/max(1, least)))
	for range count {
		start := c.pos
		e, _, _ := u.entry(c, formats)
		if c.bad || c.pos == start {
			c.fail()
			return dst
		}
		dst = append(dst, e)
	}
	return dst
}

// defineFile adds the file of a DW_LNE_define_file, unless an earlier run of the program did. base
// is the offset in .debug_line of arg's first byte.
func (u *unit) defineFile(arg cursor, base uint64) {
	f := &u.lines.files
	if f.defined || u.lines.enc.version >= 5 {
		return
	}
	u.readFiles()
	if e := readFile(&arg, base); !arg.bad && len(f.files) < maxFiles {
		f.files = append(f.files, e)
	}
}

// path returns the path of file i. As in LLVM, it joins the compilation directory, the directory
// and the name, and neither cleans nor shortens the path. It returns an empty path for an unknown
// file.
func (u *unit) path(i uint32) path {
	t := u.openLines()
	if !t.present {
		return path{}
	}
	u.readFiles()
	f := &t.files
	if t.enc.version < 5 {
		i-- // 0 becomes too large
	}
	if uint64(i) >= uint64(len(f.files)) {
		return path{}
	}
	if int(i) >= len(f.numbers) {
		f.numbers = append(f.numbers, make([]uint32, len(f.files)-len(f.numbers))...)
	}
	if f.numbers[i] == 0 {
		p := u.buildPath(f.files[i])
		p.plain = isPlain(p.text)
		f.heap += int64(len(p.text))
		f.paths = append(f.paths, p)
		f.numbers[i] = uint32(len(f.paths))
	}
	return f.paths[f.numbers[i]-1]
}

func (u *unit) buildPath(e fileEntry) path {
	d := u.d
	name := d.text(e.name)
	if len(name) > maxPathBytes {
		return path{}
	}
	if isAbs(name) {
		return path{text: string(name)}
	}
	f := &u.lines.files
	v5 := u.lines.enc.version >= 5
	var comp, dir []byte
	switch {
	case v5 && e.dir == 0 && len(f.dirs) > 0:
		comp = d.text(f.dirs[0]) // the compilation directory
	case v5 && uint64(e.dir) < uint64(len(f.dirs)):
		dir = d.text(f.dirs[e.dir])
	case !v5 && e.dir > 0 && uint64(e.dir) <= uint64(len(f.dirs)):
		dir = d.text(f.dirs[e.dir-1])
	}
	if (!v5 || e.dir != 0) && !isAbs(dir) {
		comp = d.text(u.compDir)
	}
	if len(comp)+len(dir)+len(name) > maxPathBytes {
		return path{}
	}
	text := make([]byte, 0, len(comp)+len(dir)+len(name)+2)
	text = appendPart(text, comp)
	p := path{comp: uint32(len(text)), loose: v5 && e.dir == 0 && len(comp) > 0 && !isAbs(comp)}
	text = appendPart(text, dir)
	p.dir = uint32(len(text))
	text = append(text, name...)
	if len(name) == 0 { // no separator is needed
		text = bytes.TrimSuffix(text, []byte{'/'})
		p.comp, p.dir = min(p.comp, uint32(len(text))), uint32(len(text))
	}
	p.text = unsafe.String(unsafe.SliceData(text), len(text))
	return p
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

func appendPart(path, part []byte) []byte {
	if len(part) == 0 {
		return path
	}
	path = append(path, part...)
	if part[len(part)-1] != '/' {
		path = append(path, '/')
	}
	return path
}

// isAbs reports whether a path is absolute by the rules of Unix or of Windows.
func isAbs(p []byte) bool {
	if len(p) > 0 && p[0] == '/' {
		return true
	}
	if len(p) > 2 && p[1] == ':' && (p[2] == '/' || p[2] == '\\') {
		return p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z'
	}
	return len(p) > 2 && p[0] == '\\' && p[1] == '\\'
}
