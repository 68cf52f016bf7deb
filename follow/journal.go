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
	"time"
)

// A state file is a journal: records of two lines each, a head with the hash of the other line,
// and JSON. The first record holds all files, each later one those that have changed since. A
// record is appended without a sync, which survives the death of the process but not that of the
// machine; now and then a mark says that the records up to a place were synced, after the output
// was. So when the machine was started since, the records count up to the last mark.
const (
	stateVersion = 1
	stateMagic   = "symfilter state "
	stateMode    = fs.FileMode(0o600) // the journal has names of files and programs
	maxState     = 128 << 20          // bytes of a state file: the names of some 200,000 files
	maxContexts  = 16 << 20           // bytes of what sinks have to know, of all files; the lines of further ones are read again
	compactSize  = 1 << 20            // bytes of a journal below which it is not written anew
	compactTimes = 4                  // times the size of its first record, from which a larger journal is written anew
	bootStep     = 2                  // seconds that two readings of the time of the machine's start may differ
)

// A checkpoint is one record of a journal.
type checkpoint struct {
	Version int               `json:"v"`
	Host    string            `json:"host,omitempty"` // hash of the machine's ID
	Boot    int64             `json:"boot,omitempty"` // when the machine was started, in Unix seconds; 0 in the first record, which was synced
	Synced  int64             `json:"synced,omitempty"`
	Time    time.Time         `json:"time"`            // when it was written
	Names   []string          `json:"names,omitempty"` // patterns that were followed
	Files   []json.RawMessage `json:"files,omitempty"` // savedSource each
	Gone    []string          `json:"gone,omitempty"`  // paths that are not followed any more
}

// savedSource is what a record holds of one name.
type savedSource struct {
	Path    string         `json:"path"`
	Reading []savedReading `json:"reading,omitempty"` // the oldest first; the last has the name, or had it
	Read    []mark         `json:"read,omitempty"`    // files that are not to be read again
	Context string         `json:"context,omitempty"` // for the lines after all of them
	Real    string         `json:"real,omitempty"`    // what the name stood for
	Beside  *string        `json:"beside,omitempty"`  // the siblings that are not to be read
}

// savedReading is a place in a file up to which lines were printed.
type savedReading struct {
	mark
	Replay bool  `json:"replay,omitempty"` // the lines before are to be read again, quietly
	Quiet  int64 `json:"quiet,omitempty"`  // up to where lines are not printed
}

var (
	errTorn     = errors.New("it is torn, or no checkpoint")
	errForeign  = errors.New("not a checkpoint of symfilter, and not empty")
	errTooLarge = errors.New("larger than any checkpoint")
)

// A journal is what a state file holds.
type journal struct {
	checkpoint                            // of the first record, but for Time, which is the last one's
	files      map[string]json.RawMessage // by path
	size       int64                      // bytes of the file
	first      int64                      // bytes of its first record
	continues  bool                       // further records may be appended: the machine was not started since
	torn       bool                       // there are bytes after its records
	damaged    bool                       // a whole record is among them
}

// readJournal reads a state file that is open. boot is when the machine was started.
func readJournal(f *os.File, boot int64) (journal, error) {
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
	return parseJournal(data[:n], boot)
}

// parseJournal reads the bytes of a state file. It ends at the first record that is torn, as one
// is in whose midst the process was killed.
func parseJournal(data []byte, boot int64) (j journal, err error) {
	if n := min(len(data), len(stateMagic)); string(data[:n]) != stateMagic[:n] && len(bytes.Trim(data, "\x00")) > 0 {
		return j, errForeign
	}
	type record struct {
		checkpoint
		end int64
	}
	var records []record
	synced, end := int64(0), 0
	for {
		c, n := nextRecord(data[end:])
		if n == 0 {
			break
		}
		end += n
		synced = max(synced, c.Synced)
		records = append(records, record{c, int64(end)})
	}
	if len(records) == 0 {
		return j, errTorn
	}
	j.checkpoint, j.first = records[0].checkpoint, records[0].end
	if j.Version != stateVersion {
		return j, fmt.Errorf("it has version %d, not %d", j.Version, stateVersion)
	}
	j.size = int64(end)
	j.files = make(map[string]json.RawMessage)
	j.continues = data[end-1] == '\n'
	j.torn = end < len(data)
	j.damaged = bytes.Count(data[end:], []byte{'\n'}) > 1
	for i, r := range records {
		if i > 0 && !sameBoot(r.Boot, boot) {
			j.continues = false
			if r.end > synced {
				break
			}
		}
		for _, raw := range r.Files {
			var s struct{ Path string }
			if json.Unmarshal(raw, &s) == nil {
				j.files[s.Path] = raw
			}
		}
		for _, path := range r.Gone {
			delete(j.files, path)
		}
		if r.Synced == 0 {
			j.Time = r.Time
		}
	}
	return j, nil
}

// sameBoot reports whether two times of the machine's start are of one start. Two starts are as far
// apart as the machine has run; a clock that was set makes one start look like two, which costs
// lines that come twice and none that are lost.
func sameBoot(a, b int64) bool { return max(a-b, b-a) <= bootStep }

// nextRecord reads the record at the beginning of data. Its size is 0 if there is no whole one.
func nextRecord(data []byte) (c checkpoint, size int) {
	head, rest, _ := bytes.Cut(data, []byte{'\n'})
	body, _, ended := bytes.Cut(rest, []byte{'\n'})
	if string(head) != stateHead(body) || json.Unmarshal(body, &c) != nil {
		return checkpoint{}, 0
	}
	size = len(head) + 1 + len(body)
	if ended {
		size++
	}
	return c, size
}

// stateHead is the first line of a record.
func stateHead(body []byte) string { return stateMagic + hash(body) }

// appendRecord appends c to dst as it stands in a state file.
func appendRecord(dst []byte, c checkpoint) ([]byte, error) {
	c.Version = stateVersion
	files := c.Files
	c.Files = nil
	body, err := json.Marshal(c)
	if err != nil {
		return dst, err
	}
	if len(files) > 0 { // they are JSON already: to be marshalled they would all be read again
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

// openState opens the state file. It follows no symbolic link, and takes nothing that another user
// may have planted in a folder for all.
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
		err = fmt.Errorf("%w: it has just been replaced", fs.ErrNotExist)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, opened, nil
}

var (
	errLink    = errors.New("a symbolic link: name the file itself")
	errPlanted = errors.New("another user's, in a folder in which all may write: use a folder of your own")
)

// refused reports whether err says that the state file is somebody's, to be left as it is.
func refused(err error) bool {
	return slices.ContainsFunc([]error{errIrregular, errLink, errPlanted, errForeign, errTooLarge}, func(r error) bool { return errors.Is(err, r) })
}
