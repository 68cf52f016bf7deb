// Package checkpoint encodes the state that a program needs after a restart, as a JSON object
// with a version. Checkpoints are not trusted: decoding takes bounded memory. Its errors
// distinguish torn data, data of another version, and damaged data.
package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Version is the "v" of each checkpoint. It increases if a field is removed or changes its
// meaning. In version 1, parts of a checkpoint were not JSON.
const Version = 2

const (
	maxSize = 256 << 20 // bytes; a filter at all of its limits needs about half
	maxList = 512 << 10 // elements of a List; a process has up to 256 Ki maps, and as many modules
)

// Reasons why a checkpoint is refused.
var (
	ErrTorn    = errors.New("cut off: the end is missing")
	ErrVersion = errors.New("written by another version of symfilter")
	ErrDamaged = errors.New("damaged")
)

// Damaged returns an error that wraps ErrDamaged.
func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// Append appends v as JSON to dst. It panics if a type in v has no JSON form.
func Append(dst []byte, v any) []byte {
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false) // keep the objects in a RawMessage unchanged
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// Decode decodes data, a result of Append, into v. An error wraps ErrTorn, ErrVersion or
// ErrDamaged; v is then undefined. Long slices in v must be Lists.
func Decode(data []byte, v any) error {
	if len(data) > maxSize {
		return Damaged("%d bytes; a checkpoint has at most %d", len(data), maxSize)
	}
	if bytes.HasPrefix(data, []byte("{{{")) {
		return fmt.Errorf("%w: version 1, not %d", ErrVersion, Version)
	}
	var head struct {
		Version int `json:"v"`
	}
	switch err := json.NewDecoder(bytes.NewReader(data)).Decode(&head); {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return ErrTorn
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case head.Version != Version:
		// in version 1, the checkpoint of an input was an object without a version
		return fmt.Errorf("%w: version %d, not %d", ErrVersion, max(head.Version, 1), Version)
	}
	return Part(data, v)
}

// Part decodes v from data that Decode found inside a checkpoint, and that has no version of its
// own. An error wraps ErrDamaged.
func Part(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if err != nil && !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// A List is a slice with a bounded number of elements. A few bytes of JSON may encode a large
// element, so the bound limits the memory for a hostile checkpoint.
type List[T any] []T

// UnmarshalJSON reads an array of at most maxList elements.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	*l = nil
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return Damaged("%.20q is not a list", data)
	}
	for d.More() {
		if len(*l) == maxList {
			return Damaged("a list has more than %d elements", maxList)
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		*l = append(*l, v)
	}
	return nil
}

// Text is text of a log. In JSON it is a string if it is UTF-8, otherwise {"base64":"…"}.
type Text []byte

// MarshalJSON returns the JSON of t, from which UnmarshalJSON restores each byte.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return Append(nil, string(t)), nil
	}
	return Append(nil, encoded{t}), nil
}

// UnmarshalJSON reads the JSON that MarshalJSON returns.
func (t *Text) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		var e encoded
		err := json.Unmarshal(data, &e)
		*t = e.Base64
		return err
	}
	var s string
	err := json.Unmarshal(data, &s)
	*t = Text(s)
	return err
}

// encoded is the JSON form of a Text that is not UTF-8.
type encoded struct {
	Base64 []byte `json:"base64"`
}
