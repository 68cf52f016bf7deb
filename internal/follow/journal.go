package follow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/lineage"
)

// A state file is a journal of records. A record has two lines: a head with the hash of the second
// line, and JSON. The first record lists all files, each later record the changed files. Records
// are appended without a sync: they survive the death of the process, but not a power cut. From
// time to time, the output is synced, and then the file, with a mark. Records before a mark survive
// a power cut. After a restart of the machine, only the first record and the records before the
// last mark are valid.
const (
	stateVersion = 1
	stateMagic   = "symfilter state "
	stateMode    = fs.FileMode(0o600) // it contains names of files and programs
	// bytes of a state file: enough for the names of about 200,000 files
	maxState = 128 << 20
	// bytes of saved context of all files together; a context beyond this limit is not saved, and
	// the lines of its file are read again
	maxContexts = 16 << 20
	compactSize = 1 << 20 // bytes of a journal that is not rewritten yet
	// a larger journal is rewritten at this many times the size of its first record
	compactTimes = 4
	bootStep     = 2 // largest difference in seconds between two readings of the same start time
)

type record struct {
	Version int    `json:"v"`
	Host    string `json:"host,omitempty"` // hash of the machine's ID
	// start of the machine in Unix seconds; 0 in the first record, which was synced
	Boot   int64  `json:"boot,omitempty"`
	BootID string `json:"bootid,omitempty"` // hash of the kernel's ID of that start; empty: unknown
	// size of the synced part of the journal; 0: not a mark
	Synced int64             `json:"synced,omitempty"`
	Time   time.Time         `json:"time"`            // when the record was written
	Names  []string          `json:"names,omitempty"` // the patterns that were followed
	Files  []json.RawMessage `json:"files,omitempty"` // each a savedSource
	Gone   []string          `json:"gone,omitempty"`  // paths that are no longer followed
}

// A savedSource is the entry of one followed name in a record.
type savedSource struct {
	Path string `json:"path"`
	// places up to which the files were printed, oldest file first; the last file has the followed
	// name, or had it last
	Reading []savedReading `json:"reading,omitempty"`
	Read    []lineage.Mark `json:"read,omitempty"` // files that must not be read again
	// context of the sink after all files in Reading
	Context string `json:"context,omitempty"`
	// path with symbolic links resolved
	RealPath string `json:"real,omitempty"`
	// fingerprints of the siblings that must not be read; see entry
	Beside *string `json:"beside,omitempty"`
	// Beside includes the compressed siblings
	ListsArchives bool `json:"archives,omitempty"`
}

// An entry is the JSON of a savedSource. A record omits its siblings, which may be hundreds, if
// they equal the siblings in the name's previous entry.
type entry struct {
	raw    json.RawMessage // without Beside
	beside string          // JSON of Beside
}

func newEntry(s savedSource) (e entry, err error) {
	beside, err := json.Marshal(s.Beside)
	if err != nil {
		return e, err
	}
	s.Beside = nil
	e.raw, err = json.Marshal(s)
	e.beside = string(beside)
	return e, err
}

// json returns the entry as JSON for a record. If whole is set, the JSON includes the siblings.
func (e entry) json(whole bool) json.RawMessage {
	if !whole {
		return e.raw
	}
	return fmt.Appendf(nil, `%s,"beside":%s}`, e.raw[:len(e.raw)-1], e.beside)
}

func (e entry) size() int { return len(e.raw) + len(e.beside) }

func (e entry) equal(other entry) bool {
	return bytes.Equal(e.raw, other.raw) && e.beside == other.beside
}

// A savedReading is the place in a file up to which lines were printed.
type savedReading struct {
	lineage.Mark
	Size   int64 `json:"size,omitempty"`   // size of the file, if more than was printed
	Replay bool  `json:"replay,omitempty"` // lines before the place must be reread, quietly
	Quiet  int64 `json:"quiet,omitempty"`  // lines before this offset are not printed
	// nothing was printed yet: lines after Quiet are printed, even with Replay
	Held bool `json:"held,omitempty"`
	// number, from 1, of a rotated file's sink; 0: the sink of the followed name
	Sink int `json:"sink,omitempty"`
	// context of the rotated file's sink, only in the first reading with this sink
	Context string `json:"context,omitempty"`
}

var (
	errTorn     = errors.New("the file is cut off, or not a checkpoint")
	errForeign  = errors.New("not a checkpoint of symfilter, and not empty")
	errTooLarge = errors.New("larger than any checkpoint")
)

// A journal is the content of a state file.
type journal struct {
	record                            // the first record, with the Time of the last
	files  map[string]json.RawMessage // by path
	beside map[string]json.RawMessage // Beside of each file, by path
	size   int64                      // bytes of its valid records
	first  int64                      // bytes of its first record
	// records may be appended, since the machine was not restarted after they were written
	continues bool
	torn      bool // bytes follow the last valid record
	damaged   bool // a complete but invalid record is among them
}

// readJournal reads an open state file. now is the last start of the machine.
func readJournal(f *os.File, now boot) (journal, error) {
	info, err := f.Stat()
	if err != nil {
		return journal{}, err
	}
	if info.Size() > maxState {
		return journal{}, fmt.Errorf("%w: %d bytes", errTooLarge, info.Size())
	}
	data := make([]byte, info.Size())
	n, err := f.ReadAt(data, 0)
	if err != nil && err != io.EOF {
		return journal{}, err
	}
	return parseJournal(data[:n], now)
}

// parseJournal parses a state file up to the first incomplete or damaged record, for example of a
// killed writer. It ignores records whose output a power cut may have lost.
func parseJournal(data []byte, now boot) (j journal, err error) {
	if n := min(len(data), len(stateMagic)); string(data[:n]) != stateMagic[:n] && len(bytes.Trim(data, "\x00")) > 0 {
		return j, errForeign
	}
	type located struct {
		record
		end int64
	}
	var records []located
	synced, end := int64(0), 0
	for {
		c, n := nextRecord(data[end:])
		if n == 0 {
			break
		}
		end += n
		synced = max(synced, c.Synced)
		records = append(records, located{c, int64(end)})
	}
	if len(records) == 0 {
		return j, errTorn
	}
	j.record, j.first = records[0].record, records[0].end
	if j.Version != stateVersion {
		return j, fmt.Errorf("the file has version %d, not %d", j.Version, stateVersion)
	}
	j.size = int64(end)
	j.files, j.beside = make(map[string]json.RawMessage), make(map[string]json.RawMessage)
	j.continues = data[end-1] == '\n'
	j.torn = end < len(data)
	j.damaged = bytes.Count(data[end:], []byte{'\n'}) > 1
	for i, r := range records {
		if i > 0 && !r.isSince(now) {
			j.continues = false
			if r.end > synced {
				break
			}
		}
		for _, raw := range r.Files {
			var s struct {
				Path   string
				Beside json.RawMessage
			}
			if json.Unmarshal(raw, &s) != nil {
				continue
			}
			path := decodePath(s.Path)
			j.files[path] = raw
			if s.Beside != nil {
				j.beside[path] = s.Beside
			}
		}
		for _, path := range r.Gone {
			delete(j.files, decodePath(path))
			delete(j.beside, decodePath(path))
		}
		if r.Synced == 0 {
			j.Time = r.Time
		}
	}
	return j, nil
}

// A boot is a start of the machine.
type boot struct {
	time int64  // by the clocks, in Unix seconds
	id   string // see record.BootID
}

func (c *record) setBoot(b boot) { c.Boot, c.BootID = b.time, b.id }

// isSince reports whether the record was written after the machine's last start, which is passed as
// now. The clocks decide only if the kernel's ID of either start is unknown. If a clock was set in
// between, one start looks like two, and lines are printed twice. Without a battery-backed clock,
// two starts may look like one, and a power cut may lose printed lines.
func (c *record) isSince(now boot) bool {
	if c.BootID != "" && now.id != "" {
		return c.BootID == now.id
	}
	return max(c.Boot-now.time, now.time-c.Boot) <= bootStep
}

// nextRecord returns the record at the beginning of data, and its size in bytes. The size is 0 if
// there is no complete record.
func nextRecord(data []byte) (c record, size int) {
	head, rest, _ := bytes.Cut(data, []byte{'\n'})
	body, _, ended := bytes.Cut(rest, []byte{'\n'})
	if string(head) != stateHead(body) || json.Unmarshal(body, &c) != nil {
		return record{}, 0
	}
	size = len(head) + 1 + len(body)
	if ended {
		size++
	}
	return c, size
}

func stateHead(body []byte) string { return stateMagic + lineage.Hash(body) }

func appendRecord(dst []byte, c record) ([]byte, error) {
	c.Version = stateVersion
	files := c.Files
	c.Files = nil
	body, err := json.Marshal(c)
	if err != nil {
		return dst, err
	}
	if len(files) > 0 { // json.Marshal would parse each of them again
		body = append(body[:len(body)-1], `,"files":[`...)
		for i, raw := range files {
			if i > 0 {
				body = append(body, ',')
			}
			body = append(body, raw...)
		}
		body = append(body, "]}"...)
	}
	dst = append(append(dst, stateHead(body)...), '\n')
	return append(append(dst, body...), '\n'), nil
}

// encodePath returns path for a record. JSON holds only UTF-8: each other byte becomes a NUL, which
// paths never contain, and two hexadecimal digits.
func encodePath(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	var b strings.Builder
	for len(path) > 0 {
		r, n := utf8.DecodeRuneInString(path)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "\x00%02x", path[0])
		} else {
			b.WriteString(path[:n])
		}
		path = path[n:]
	}
	return b.String()
}

// decodePath undoes encodePath.
func decodePath(text string) string {
	parts := strings.Split(text, "\x00")
	for i, p := range parts[1:] {
		if c, err := strconv.ParseUint(p[:min(2, len(p))], 16, 8); err == nil {
			parts[i+1] = string([]byte{byte(c)}) + p[min(2, len(p)):]
		}
	}
	return strings.Join(parts, "")
}

func encodePaths(paths []string) (encoded []string) {
	for _, p := range paths {
		encoded = append(encoded, encodePath(p))
	}
	return encoded
}

// openState opens the state file. It refuses a symbolic link, and a file that another user may have
// planted.
func openState(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil, errLink
	case !info.Mode().IsRegular():
		return nil, nil, irregular(info)
	case planted(path, info):
		return nil, nil, errPlanted
	}
	f, err := os.OpenFile(path, stateFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%w: the file has just been replaced", fs.ErrNotExist)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, opened, nil
}

var (
	errLink    = errors.New("a symbolic link: name the file itself")
	errPlanted = errors.New("a file of another user, in a folder that everybody may write to: use a folder of your own")
)

// IsForeign reports whether an error of [New] means that the file at Options.State may belong to
// another program or user. The file was not changed.
func IsForeign(err error) bool {
	return slices.ContainsFunc([]error{lineage.ErrIrregular, errLink, errPlanted, errForeign, errTooLarge}, func(r error) bool { return errors.Is(err, r) })
}
