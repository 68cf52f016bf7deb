package dwarf

import "unsafe"

// noFile is a file number that no table reaches, for those that do not fit a row.
const noFile = 0xffff

// A fileTable is the directories and files of a line table. Paths are put together when they are asked for.
type fileTable struct {
	read    bool
	defined bool // the line program ran: what it defines is there
	dirs    []strRef
	files   []fileEntry
	paths   []string
	heap    int64 // bytes of paths
}

type fileEntry struct {
	name strRef
	dir  uint32
}

func (f *fileTable) footprint() int64 {
	return sizeOf(f.dirs) + sizeOf(f.files) + sizeOf(f.paths) + f.heap
}

// readFiles reads the tables in the header.
func (d *Data) readFiles(u *unit) {
	t := &u.lines
	f := &t.files
	if f.read || !t.present {
		return
	}
	f.read = true
	c := t.header
	if t.enc.version >= 5 {
		dirs := d.readEntries(u, &c, nil)
		for _, e := range dirs {
			f.dirs = append(f.dirs, e.name)
		}
		f.files = d.readEntries(u, &c, nil)
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
	d.spend(len(f.dirs) + len(f.files))
	if c.bad {
		u.damaged("line table at %#x: file table", u.stmtList.u)
	}
}

// readFile reads an entry in the manner of versions 2 to 4. base is the position of the cursor's start in .debug_line.
func readFile(c *cursor, base uint64) fileEntry {
	e := fileEntry{name: strRef{base + uint64(c.pos), secLine, true}}
	c.skipString()
	e.dir = clamp(c.uleb())
	c.uleb() // time of last change
	c.uleb() // bytes
	return e
}

// readEntries reads a table of version 5, whose entries are described by formats ahead of it.
func (d *Data) readEntries(u *unit, c *cursor, dst []fileEntry) []fileEntry {
	type format struct{ content, form uint64 }
	var buf [maxFormats]format
	n := int(c.u8())
	if n > len(buf) {
		c.fail()
		return dst
	}
	formats := buf[:n]
	for i := range formats {
		formats[i] = format{c.uleb(), c.uleb()}
	}
	count := c.uleb()
	if count > uint64(c.left()) || count > maxFiles { // an entry takes a byte at least
		c.fail()
		return dst
	}
	for range count {
		start := c.pos
		var e fileEntry
		for _, f := range formats {
			v := c.value(uint16(min(f.form, 0xffff)), 0, u.lines.enc)
			switch f.content {
			case lnctPath:
				e.name = d.stringOf(u, v, secLine)
			case lnctDirectoryIndex:
				e.dir = clamp(v.u)
			}
		}
		if c.bad || c.pos == start {
			c.fail()
			return dst
		}
		dst = append(dst, e)
	}
	return dst
}

// defineFile adds the file of a DW_LNE_define_file, once. base is where arg starts in .debug_line.
func (d *Data) defineFile(u *unit, arg cursor, base uint64) {
	f := &u.lines.files
	if f.defined || u.lines.enc.version >= 5 {
		return
	}
	d.readFiles(u)
	if e := readFile(&arg, base); !arg.bad && len(f.files) < maxFiles {
		f.files = append(f.files, e)
	}
}

// path returns the path of file i, as LLVM puts it together: the compilation directory, the directory and the name, neither cleaned nor
// shortened. It is "" when there is no such file.
func (d *Data) path(u *unit, i uint32) string {
	t := d.openLines(u)
	if !t.present {
		return ""
	}
	d.readFiles(u)
	f := &t.files
	if t.enc.version < 5 {
		i-- // 0 becomes too large
	}
	if uint64(i) >= uint64(len(f.files)) {
		return ""
	}
	if int(i) >= len(f.paths) {
		f.paths = append(f.paths, make([]string, len(f.files)-len(f.paths))...)
	}
	if f.paths[i] == "" {
		f.paths[i] = d.buildPath(u, f.files[i])
		f.heap += int64(len(f.paths[i]))
	}
	return f.paths[i]
}

func (d *Data) buildPath(u *unit, e fileEntry) string {
	name := d.text(e.name)
	if len(name) > maxPathBytes {
		return ""
	}
	if isAbs(name) {
		return string(name)
	}
	f := &u.lines.files
	v5 := u.lines.enc.version >= 5
	var dir []byte
	switch {
	case v5 && uint64(e.dir) < uint64(len(f.dirs)):
		dir = d.text(f.dirs[e.dir])
	case !v5 && e.dir > 0 && uint64(e.dir) <= uint64(len(f.dirs)):
		dir = d.text(f.dirs[e.dir-1])
	}
	var comp []byte
	if (!v5 || e.dir != 0) && !isAbs(dir) {
		comp = d.text(u.compDir)
	}
	if len(comp)+len(dir)+len(name) > maxPathBytes {
		return ""
	}
	path := make([]byte, 0, len(comp)+len(dir)+len(name)+2)
	for _, part := range [][]byte{comp, dir, name} {
		if len(part) == 0 {
			continue
		}
		if n := len(path); n > 0 && path[n-1] != '/' {
			path = append(path, '/')
		}
		path = append(path, part...)
	}
	return unsafe.String(unsafe.SliceData(path), len(path))
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
