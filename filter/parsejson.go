package filter

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/symfilter/symfilter/symbolize"
)

// maxJSONLine bounds the bytes of an object. A Line has at most about 1 MiB of text and 4 MiB of
// elements, and escapes make these up to six times as long.
const maxJSONLine = 32 << 20

// A JSONLine is an object of Output JSON: a line of the log. log.schema.json is its schema.
type JSONLine struct {
	Version int `json:"v"` // version of the schema: 1

	// The next fields describe the source of the line: a followed file, a container's log, a record
	// or a journal entry.
	File string `json:"file,omitempty"` // the followed file
	// time of a container's line or a journal entry
	Time   string          `json:"time,omitempty"`
	Stream string          `json:"stream,omitempty"` // stdout or stderr, for a container's line
	Attrs  json.RawMessage `json:"attrs,omitempty"`  // attributes of a line in Docker's log
	// member of a record that contains the line
	Field   string            `json:"field,omitempty"`
	Journal map[string]string `json:"journal,omitempty"` // fields of the journal entry

	Process   string        `json:"process,omitempty"`   // see Options.ProcessKey
	Text      string        `json:"text"`                // the line as printed with Output Text
	Raw       []byte        `json:"raw,omitempty"`       // bytes of Text, if some are not UTF-8
	Continues bool          `json:"continues,omitempty"` // the next object continues the line
	Elements  []JSONElement `json:"elements,omitempty"`  // in line order
}

// A JSONElement describes an element or raw frame of a JSONLine. Its Tag determines which fields
// are set.
type JSONElement struct {
	// bt, frame (a raw frame), pc, data, module, mmap, symbol, hexdict, dumpfile or reset
	Tag string `json:"tag,omitempty"`

	// For frames: the number (0 is innermost), the dialect of a raw frame, the proof of its file,
	// and the rest of the element after the address.
	Frame    *int   `json:"frame,omitempty"`
	Dialect  string `json:"dialect,omitempty"`
	Verified string `json:"verified,omitempty"` // build-id, symbol, call, code, path or process
	Message  string `json:"message,omitempty"`

	// For addresses: Address as logged, Lookup as looked up (one byte before a return address), and
	// Offset, which is Lookup relative to the module. The answer is Frames, innermost first, a
	// Variable, or a Reason.
	Key      string              `json:"key,omitempty"`   // key of a value in a hexdict
	Value    *JSONHex            `json:"value,omitempty"` // value in a hexdict
	Address  *JSONHex            `json:"address,omitempty"`
	Lookup   *JSONHex            `json:"lookup,omitempty"`
	Module   string              `json:"module,omitempty"` // logged name of the module
	BuildID  string              `json:"build_id,omitempty"`
	Offset   *JSONHex            `json:"offset,omitempty"`
	Frames   []symbolize.Frame   `json:"frames,omitempty"`
	Variable *symbolize.Variable `json:"variable,omitempty"`
	Reason   string              `json:"reason,omitempty"`

	ID        *uint64       `json:"id,omitempty"`   // ID of a module
	Maps      []JSONMap     `json:"maps,omitzero"`  // maps of a module, by address
	Type      string        `json:"type,omitempty"` // type of a dump file
	Name      string        `json:"name,omitempty"` // name of a symbol or a dump file
	Demangled string        `json:"demangled,omitempty"`
	Values    []JSONElement `json:"values,omitzero"` // values of a hexdict
}

// A JSONMap is an address range mapped to a module.
type JSONMap struct {
	Start  JSONHex `json:"start"`
	End    JSONHex `json:"end"`    // the last address
	Mode   string  `json:"mode"`   // for example rx
	Offset JSONHex `json:"offset"` // module-relative address of Start
}

// A JSONHex is an address or a size. In JSON it is a string such as 0x1f, because many readers lose
// bits of numbers beyond 2^53.
type JSONHex uint64

// MarshalText returns h as in 0x1f.
func (h JSONHex) MarshalText() ([]byte, error) {
	return strconv.AppendUint([]byte("0x"), uint64(h), 16), nil
}

// UnmarshalText sets h from the output of MarshalText.
func (h *JSONHex) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("%q is not a hexadecimal number such as 0x1f", text)
	}
	*h = JSONHex(n)
	return nil
}

// ParseJSON reads output of Output JSON, with one object on each line. For an unreadable line, such
// as the last line of a killed process, it yields an error with the line number, and continues. A
// read error, or a line of more than 32 MiB, ends the sequence.
func ParseJSON(r io.Reader) iter.Seq2[*JSONLine, error] {
	return func(yield func(*JSONLine, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxJSONLine)
		n := 0
		for lines.Scan() {
			n++
			to := new(JSONLine)
			err := json.Unmarshal(lines.Bytes(), to)
			if err == nil && to.Version != 1 {
				err = fmt.Errorf("the schema has version %d, want 1", to.Version)
			}
			if err != nil {
				to, err = nil, fmt.Errorf("line %d: %w", n, err)
			}
			if !yield(to, err) {
				return
			}
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(nil, fmt.Errorf("line %d has more than %d bytes", n+1, maxJSONLine))
		} else if err != nil {
			yield(nil, err)
		}
	}
}
