package dwarf

import "bytes"

// Fields of line tables (DW_LNCT_*) with the text or checksum of a source file. Lookup ignores
// them.
const (
	lnctMD5        = 0x05
	lnctLLVMSource = 0x2001 // DW_LNCT_LLVM_source, from clang's -gembed-source
)

// MaxSource bounds an embedded source text, in bytes: generated sources of 10 MB exist.
const MaxSource = 16 << 20

// A Source is the text or the checksum of a source file, from debug information.
type Source struct {
	Text   []byte // the whole file; nil: not embedded. It aliases the file of the Data
	MD5    [16]byte
	HasMD5 bool
}

// Source returns the text or checksum of a source file, from the unit that describes addr. file is
// the [Frame.File] of a frame in that unit. ok is false if the unit records neither; only line
// tables of version 5 can have them.
//
// Source reads the file table on each call: Lookup keeps neither texts nor checksums.
func (d *Data) Source(addr uint64, file string) (s Source, ok bool, err error) {
	d.begin()
	u := d.unitFor(addr)
	if u != nil {
		u.used = d.tick
		d.work = maxWork
		s, ok = u.source(file)
		d.count(u)
	}
	d.trim()
	return s, ok, d.firstErr(u)
}

func (u *unit) source(file string) (s Source, ok bool) {
	t := u.openLines()
	if !t.present || t.enc.version < 5 {
		return s, false
	}
	u.readFiles()
	c := t.header()
	u.eachEntry(&c, func(fileEntry, value, value) bool { return true }) // skips the directories
	name := []byte(file[lastSlash(file)+1:])
	u.eachEntry(&c, func(e fileEntry, text, md5 value) bool {
		if !text.ok() && !md5.ok() {
			return false
		}
		// the name rules out most files: their paths need not be joined
		recorded := u.d.text(e.name)
		if !u.d.spend(1 + len(recorded)/256) {
			return false
		}
		if !bytes.HasSuffix(recorded, name) {
			return true
		}
		path := u.buildPath(e).text
		if path != file {
			return u.d.spend(len(path) / 16)
		}
		s.Text = u.longText(text)
		if md5.form == formData16 {
			s.HasMD5 = true
			copy(s.MD5[:], t.program.buf[md5.u:])
		}
		ok = s.Text != nil || s.HasMD5
		return !ok
	})
	return s, ok
}

func lastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' || s[i] == '\\' {
			return i
		}
	}
	return -1
}

// longText returns the string v of a line table; nil if it is empty or exceeds MaxSource bytes.
func (u *unit) longText(v value) []byte {
	s := u.stringOf(v, secLine)
	if !s.ok {
		return nil
	}
	b := u.d.sec.get(s.sec)
	if s.off >= uint64(len(b)) {
		return nil
	}
	b = b[s.off:]
	b = b[:min(len(b), MaxSource+1)]
	n := bytes.IndexByte(b, 0)
	if n <= 0 {
		return nil
	}
	u.d.spend(n / 1024)
	u.d.read += int64(n)
	return b[:n:n]
}

// entry reads an entry of a table of version 5, with its source text and checksum. The value of a
// checksum is its offset in the cursor.
func (u *unit) entry(c *cursor, formats []entryFormat) (e fileEntry, text, md5 value) {
	for _, f := range formats {
		at := c.pos
		v := c.value(f.form, 0, u.lines.enc)
		switch f.content {
		case lnctPath:
			e.name = u.stringOf(v, secLine)
		case lnctDirectoryIndex:
			e.dir = clamp(v.u)
		case lnctLLVMSource:
			text = v
		case lnctMD5:
			md5 = value{uint64(at), v.form}
		}
	}
	return e, text, md5
}

// eachEntry calls visit with the results of entry for each entry of a table of version 5, until
// visit returns false. In a damaged table, it visits the entries before the damage.
func (u *unit) eachEntry(c *cursor, visit func(e fileEntry, text, md5 value) bool) {
	var buf [maxFormats]entryFormat
	formats, count := u.entryFormats(c, &buf)
	for range count {
		start := c.pos
		e, text, md5 := u.entry(c, formats)
		if c.bad || c.pos == start || !visit(e, text, md5) {
			return
		}
	}
}
