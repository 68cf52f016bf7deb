package buildid

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/newfile"
)

const (
	memoryFolder = "symbol-path" // below the cache folder
	memorySuffix = ".index"
	memoryMagic  = "symfilter symbol path 1\n" // the digit is the version of the format
	tempPrefix   = "temp-"
)

// errBadMemory reports a file that is not an index, or is damaged. The next save replaces it.
var errBadMemory = errors.New("not a usable index")

// A memory is the folder that keeps the indexes of roots between runs, one file for each root.
// Several processes may use it: files are replaced only as a whole. Files that other users may have
// changed are not read.
type memory struct {
	cache string // the cache folder; empty for none
}

// folder returns the path of the memory's folder. If make is set, it creates a missing folder. ok
// is false if the folder does not exist, or if other users could change it or the cache folder.
func (m memory) folder(make bool) (dir string, ok bool) {
	if m.cache == "" {
		return "", false
	}
	dir = filepath.Join(m.cache, memoryFolder)
	if make {
		// after an error there is no usable folder, and the check below fails
		_ = os.MkdirAll(m.cache, 0o700)
		_ = os.Mkdir(dir, 0o700)
	}
	for _, folder := range []string{m.cache, dir} {
		info, err := os.Stat(folder)
		if err != nil || !info.IsDir() || !ours(info) {
			return "", false
		}
	}
	return dir, isFolder(dir)
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func memoryFile(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:16]) + memorySuffix
}

// load returns the folders that save last wrote for root, an absolute path.
func (m memory) load(root string) ([]*folder, error) {
	dir, ok := m.folder(false)
	if !ok {
		return nil, fs.ErrNotExist
	}
	path := filepath.Join(dir, memoryFile(root))
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !ours(info) || info.Size() > maxRemembered {
		return nil, errBadMemory
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, err
	}
	folders, err := decodeFolders(data, root)
	if err == nil && time.Since(info.ModTime()) > rememberedIdle {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // a new time protects the index from trimMemory
	}
	return folders, err
}

// save writes the index of root, an absolute path.
func (m memory) save(root string, folders []*folder) error {
	dir, ok := m.folder(true)
	if !ok {
		return fmt.Errorf("keep an index below %s: the folder must belong to the user, and no other user may write to it", m.cache)
	}
	data := encodeFolders(root, folders)
	if len(data) > maxRemembered {
		return fmt.Errorf("an index of %d bytes is not kept: the limit is %d", len(data), maxRemembered)
	}
	err := writeMemory(dir, memoryFile(root), data)
	trimMemory(dir)
	return err
}

func writeMemory(dir, name string, data []byte) error {
	in, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := newfile.Create(in, tempPrefix)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Publish(name)
}

// trimMemory removes temporary files of processes that ended during a write. It also removes the
// least recently used indexes beyond rememberedMax.
func trimMemory(dir string) {
	indexes := newfile.Tidy(dir, tempPrefix, memorySuffix, time.Hour)
	for _, index := range indexes[:max(0, len(indexes)-rememberedMax)] {
		os.Remove(filepath.Join(dir, index.Name()))
	}
}

// The format of an index: memoryMagic, the root, the number of folders, the folders, and a CRC-32C
// in 4 bytes, little-endian. Numbers are uvarints and times have 8 bytes. Strings and lists begin
// with their length.

// Bits of the byte that describes a folder or file. The lowest two bits of a file's byte are its
// content type.
const (
	flagSettled = 4
	flagID      = 8
)

// minimum sizes in bytes of an encoded folder, record and member
const (
	minFolder = 1 + 8 + 1 + 1 + 1 + 1
	minRecord = 2 + 1 + 8 + 1 + 1
	minMember = 1 + 1 + 2
)

func castagnoli(data []byte) uint32 {
	return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
}

func encodeFolders(root string, folders []*folder) []byte {
	b := []byte(memoryMagic)
	b = appendString(b, root)
	b = binary.AppendUvarint(b, uint64(len(folders)))
	for _, d := range folders {
		b = appendString(b, d.rel)
		b = binary.LittleEndian.AppendUint64(b, uint64(d.state.mtime))
		b = binary.AppendUvarint(b, d.state.inode)
		b = append(b, flags(0, d.settled, ID{}))
		b = binary.AppendUvarint(b, uint64(len(d.folders)))
		for _, name := range d.folders {
			b = appendString(b, name)
		}
		b = binary.AppendUvarint(b, uint64(len(d.files)))
		for i := range d.files {
			b = appendRecord(b, &d.files[i])
		}
	}
	return binary.LittleEndian.AppendUint32(b, castagnoli(b))
}

func appendRecord(b []byte, r *record) []byte {
	b = appendString(b, r.name)
	b = binary.AppendUvarint(b, uint64(r.state.size))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.state.mtime))
	b = binary.AppendUvarint(b, r.state.inode)
	b = append(b, flags(r.content, r.settled, r.id))
	if !r.id.IsZero() {
		b = appendString(b, r.id.s)
	}
	if r.content == archive {
		b = binary.AppendUvarint(b, uint64(len(r.members)))
		for _, m := range r.members {
			b = appendString(b, m.name)
			b = binary.AppendUvarint(b, uint64(m.index))
			b = appendString(b, m.id.s)
		}
	}
	return b
}

func flags(c content, settled bool, id ID) byte {
	f := byte(c)
	if settled {
		f |= flagSettled
	}
	if !id.IsZero() {
		f |= flagID
	}
	return f
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeFolders decodes the output of encodeFolders. It accepts only names that stay below the
// root, since the bytes may be hostile.
func decodeFolders(data []byte, root string) ([]*folder, error) {
	n := len(data) - crc32.Size
	if n < 0 || binary.LittleEndian.Uint32(data[n:]) != castagnoli(data[:n]) {
		return nil, errBadMemory
	}
	body, ok := strings.CutPrefix(string(data[:n]), memoryMagic)
	if !ok {
		return nil, errBadMemory
	}
	c := &cursor{data: body}
	if c.string() != root {
		return nil, errBadMemory
	}
	n = c.count(minFolder)
	folders := make([]*folder, 0, n)
	for range n {
		d := c.folder()
		if c.bad || len(folders) > 0 && folders[len(folders)-1].rel >= d.rel {
			return nil, errBadMemory
		}
		folders = append(folders, d)
	}
	if c.bad || len(c.data) > 0 {
		return nil, errBadMemory
	}
	return folders, nil
}

// A cursor decodes an index. After an error all further values are zero.
type cursor struct {
	data string
	seen int // number of list elements announced so far
	bad  bool
}

func (c *cursor) folder() *folder {
	d := &folder{rel: c.string()}
	d.state.mtime = int64(c.fixed(8))
	d.state.inode = c.uvarint()
	d.settled = c.byte()&flagSettled != 0
	n := c.count(2)
	d.folders = make([]string, 0, n)
	for range n {
		name := c.name()
		if len(d.folders) > 0 && d.folders[len(d.folders)-1] >= name {
			c.bad = true
		}
		d.folders = append(d.folders, name)
	}
	n = c.count(minRecord)
	d.files = make([]record, 0, n)
	for range n {
		r := c.nextRecord()
		if len(d.files) > 0 && d.files[len(d.files)-1].name >= r.name {
			c.bad = true
		}
		d.files = append(d.files, r)
	}
	if d.rel != "" && (strings.ContainsRune(d.rel, 0) || !filepath.IsLocal(d.rel) || filepath.Clean(d.rel) != d.rel) {
		c.bad = true
	}
	return d
}

func (c *cursor) nextRecord() record {
	r := record{name: c.name()}
	r.state.size = int64(c.uvarint())
	r.state.mtime = int64(c.fixed(8))
	r.state.inode = c.uvarint()
	f := c.byte()
	r.content, r.settled = content(f&3), f&flagSettled != 0
	if f&flagID != 0 {
		r.id = c.id()
	}
	if r.content == archive {
		n := c.count(minMember)
		if n > maxZipMembers {
			c.bad, n = true, 0
		}
		r.members = make([]member, 0, n)
		for range n {
			m := member{name: c.string(), index: int(min(c.uvarint(), maxZipMembers)), id: c.id()}
			r.members = append(r.members, m)
		}
	}
	return r
}

// name decodes the name of a file. It sets bad if the name is a path or names no file.
func (c *cursor) name() string {
	name := c.string()
	if strings.ContainsRune(name, 0) || !filepath.IsLocal(name) || filepath.Base(name) != name || name == "." {
		c.bad = true
	}
	return name
}

func (c *cursor) id() ID {
	s := c.string()
	if len(s) == 0 || len(s) > maxIDLen {
		c.bad = true
		return ID{}
	}
	return ID{s}
}

// string returns the next string. It shares memory with the data.
func (c *cursor) string() string {
	return c.next(c.uvarint())
}

func (c *cursor) next(n uint64) string {
	if c.bad || n > uint64(len(c.data)) {
		c.bad = true
		return ""
	}
	s := c.data[:n]
	c.data = c.data[n:]
	return s
}

func (c *cursor) byte() byte { return byte(c.fixed(1)) }

func (c *cursor) fixed(n uint64) (v uint64) {
	s := c.next(n)
	for i := range len(s) {
		v |= uint64(s[i]) << (8 * i)
	}
	return v
}

func (c *cursor) uvarint() (v uint64) {
	for i := 0; i < len(c.data) && i < binary.MaxVarintLen64 && !c.bad; i++ {
		b := c.data[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			c.data = c.data[i+1:]
			return v
		}
	}
	c.bad = true
	return 0
}

// count decodes the length of a list with elements of at least size bytes.
func (c *cursor) count(size int) int {
	n := c.uvarint()
	if n > uint64(len(c.data)/size) || n > uint64(maxIndexed+maxZipMembers-c.seen) {
		c.bad = true
		return 0
	}
	c.seen += int(n)
	return int(n)
}
