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

// maxJSONLine bounds the bytes of an object: the text of a Line has at most about 1 MiB and its
// elements about 4 MiB, of which escapes make up to six times as many.
const maxJSONLine = 32 << 20

// A JSONLine is an object of Output JSON: a line of the log. Its schema is log.schema.json.
type JSONLine struct {
	Version int `json:"v"` // of the schema: 1

	// What the envelope of the line says.
	File    string            `json:"file,omitempty"`    // the followed file
	Time    string            `json:"time,omitempty"`    // of a container's line, or a journal's entry
	Stream  string            `json:"stream,omitempty"`  // stdout or stderr, of a container's line
	Attrs   json.RawMessage   `json:"attrs,omitempty"`   // of a line of Docker's log
	Field   string            `json:"field,omitempty"`   // the member of a record that has the line
	Journal map[string]string `json:"journal,omitempty"` // fields of the entry

	Process   string        `json:"process,omitempty"`   // see Options.ProcessKey
	Text      string        `json:"text"`                // the line as Output Text prints it
	Raw       []byte        `json:"raw,omitempty"`       // the bytes of Text, if some are not UTF-8
	Continues bool          `json:"continues,omitempty"` // the next object has more of the line
	Elements  []JSONElement `json:"elements,omitempty"`  // in the order of the line
}

// A JSONElement is the meaning of an element, or of a raw frame, of a JSONLine. Its Tag says which
// fields are set.
type JSONElement struct {
	Tag string `json:"tag,omitempty"` // bt, frame (a raw one), pc, data, module, mmap, symbol, hexdict, dumpfile, reset

	// Of frames: the number, 0 innermost, the form of a raw one and what the choice of its file rests
	// on, and what the element says beside the address.
	Frame    *int   `json:"frame,omitempty"`
	Dialect  string `json:"dialect,omitempty"`
	Verified string `json:"verified,omitempty"` // build-id, symbol, call, code or path
	Message  string `json:"message,omitempty"`

	// Of addresses: as logged, as looked up (one byte before a return address), where that is in the
	// module, and the answer: Frames, innermost first, or a Variable, or the Reason why there is
	// neither.
	Key      string              `json:"key,omitempty"`   // of a value of a hexdict
	Value    *JSONHex            `json:"value,omitempty"` // of a hexdict
	Address  *JSONHex            `json:"address,omitempty"`
	Lookup   *JSONHex            `json:"lookup,omitempty"`
	Module   string              `json:"module,omitempty"` // the name as logged
	BuildID  string              `json:"build_id,omitempty"`
	Offset   *JSONHex            `json:"offset,omitempty"`
	Frames   []symbolize.Frame   `json:"frames,omitempty"`
	Variable *symbolize.Variable `json:"variable,omitempty"`
	Reason   string              `json:"reason,omitempty"`

	ID        *uint64       `json:"id,omitempty"`   // of a module
	Maps      []JSONMap     `json:"maps,omitzero"`  // of a module, by address
	Type      string        `json:"type,omitempty"` // of a dump file
	Name      string        `json:"name,omitempty"` // of a symbol, or a dump file
	Demangled string        `json:"demangled,omitempty"`
	Values    []JSONElement `json:"values,omitzero"` // of a hexdict
}

// A JSONMap is a range of addresses that is mapped to a module.
type JSONMap struct {
	Start  JSONHex `json:"start"`
	End    JSONHex `json:"end"`    // the last address
	Mode   string  `json:"mode"`   // such as rx
	Offset JSONHex `json:"offset"` // the module-relative address of Start
}

// A JSONHex is an address or a size: in JSON a string such as 0x1f, because many readers lose bits
// of numbers beyond 2^53.
type JSONHex uint64

// MarshalText returns h in hex.
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

// ParseJSON reads what Output JSON has printed, an object a line. A line that cannot be read, as the
// last one of a process that was killed, is an error with its number; the lines after it follow. The
// error of the reader, or a line of more than 32 MiB, ends the sequence.
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
