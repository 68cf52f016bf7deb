package batch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	// MaxBody bounds a request's JSON, in bytes: 100,000 addresses with build IDs of 20 bytes take
	// 8 MB.
	MaxBody = 16 << 20
	// MaxText bounds a string, in bytes: PATH_MAX.
	MaxText  = 4096
	maxDepth = 64 // nested objects and arrays in a skipped member
)

// An InvalidError reports an invalid request.
type InvalidError struct {
	place string // such as frames[3].offset; empty: the whole request
	text  string
}

func (e *InvalidError) Error() string {
	if e.place == "" {
		return e.text
	}
	return e.place + ": " + e.text
}

// A TooLargeError reports that a request exceeds a bound.
type TooLargeError struct{ text string }

func (e *TooLargeError) Error() string { return e.text }

// Invalidf returns an InvalidError.
func Invalidf(format string, args ...any) error {
	return &InvalidError{text: fmt.Sprintf(format, args...)}
}

// TooLargef returns a TooLargeError.
func TooLargef(format string, args ...any) error {
	return &TooLargeError{fmt.Sprintf(format, args...)}
}

// A Reader reads one JSON value token by token. The caller reads the members that it needs, and
// skips all others.
type Reader struct {
	d    *json.Decoder
	body *bounded
}

// NewReader returns a Reader of at most MaxBody bytes of body. Each byte is taken from the room:
// the decoder keeps a whole string, which may be as long as the body.
func NewReader(body io.Reader, room Room) *Reader {
	b := &bounded{r: body, room: room, left: MaxBody}
	d := json.NewDecoder(b)
	d.UseNumber()
	return &Reader{d, b}
}

// A bounded is an io.Reader of r. Its Read fails if r has more than left bytes, or if the room does
// not grant memory for the bytes read.
type bounded struct {
	r    io.Reader
	room Room
	left int64
	err  error // error of r, except io.EOF
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		if n, err := b.r.Read(p[:1]); n == 0 {
			return 0, err
		}
		b.err = TooLargef("the request is larger than %d MiB; send it in several requests", MaxBody>>20)
		return 0, b.err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	if !b.room.Take(int64(n)) {
		b.err = ErrNoRoom
		return 0, b.err
	}
	return n, err
}

// token returns the next token. Errors of the body's reader are returned unchanged.
func (r *Reader) token() (json.Token, error) {
	t, err := r.d.Token()
	switch {
	case err == nil:
		return t, nil
	case r.body.err != nil:
		return nil, r.body.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, Invalidf("the JSON in the body is missing or incomplete")
	}
	return nil, Invalidf("the body is not JSON: %.100s", err)
}

// Object reads an object. It calls visit for each member; visit reads the value.
func (r *Reader) Object(visit func(name string) error) error {
	if err := r.open('{', "an object"); err != nil {
		return err
	}
	for r.d.More() {
		t, err := r.token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if err := visit(name); err != nil {
			return within(err, name)
		}
	}
	_, err := r.token()
	return err
}

// Array reads an array. It calls visit for each element; visit reads it.
func (r *Reader) Array(visit func() error) error {
	if err := r.open('[', "an array"); err != nil {
		return err
	}
	for i := 0; r.d.More(); i++ {
		if err := visit(); err != nil {
			return within(err, "["+strconv.Itoa(i)+"]")
		}
	}
	_, err := r.token()
	return err
}

// within adds the name of an outer place to an InvalidError: offset in frames[3] becomes
// frames[3].offset. It returns other errors unchanged.
func within(err error, place string) error {
	e, ok := err.(*InvalidError)
	if !ok {
		return err
	}
	place = fmt.Sprintf("%.40s", place)
	if e.place != "" && e.place[0] != '[' {
		place += "."
	}
	return &InvalidError{place + e.place, e.text}
}

// open reads the beginning of an object or array.
func (r *Reader) open(delim json.Delim, want string) error {
	t, err := r.token()
	if err == nil && t != delim {
		err = Invalidf("%s, want %s", describe(t), want)
	}
	return err
}

func describe(t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return "an object"
		}
		return "an array"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "true or false"
	}
	return "null"
}

// Text reads a string of at most MaxText bytes.
func (r *Reader) Text() (string, error) {
	t, err := r.token()
	if err != nil {
		return "", err
	}
	if s, ok := t.(string); ok {
		if len(s) > MaxText {
			return "", TooLargef("a string has %d bytes; at most %d are allowed", len(s), MaxText)
		}
		return s, nil
	}
	return "", Invalidf("%s, want a string", describe(t))
}

// Bool reads true or false.
func (r *Reader) Bool() (bool, error) {
	t, err := r.token()
	if b, ok := t.(bool); ok || err != nil {
		return b, err
	}
	return false, Invalidf("%s, want true or false", describe(t))
}

// Optional is like Text, but skips a value that is not a string.
func (r *Reader) Optional() (string, error) {
	t, err := r.token()
	if err != nil {
		return "", err
	}
	switch s := t.(type) {
	case string:
		if len(s) > MaxText {
			return "", TooLargef("a string has %d bytes; at most %d are allowed", len(s), MaxText)
		}
		return s, nil
	case json.Delim:
		return "", r.skip(1)
	}
	return "", nil
}

// Uint reads a number from 0 to 2^64-1: a JSON number, or a string with decimal digits or 0x and
// hex digits.
func (r *Reader) Uint() (uint64, error) {
	t, err := r.token()
	if err != nil {
		return 0, err
	}
	var text string
	switch t := t.(type) {
	case json.Number:
		text = string(t)
	case string:
		text = t
	default:
		return 0, Invalidf("%s, want a number", describe(t))
	}
	base := 10
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		text, base = digits, 16
	}
	n, err := strconv.ParseUint(text, base, 64)
	if err != nil {
		return 0, Invalidf("%.40q is not a number from 0 to 2^64-1", text)
	}
	return n, nil
}

// Index reads an index: an integer, -1 for none.
func (r *Reader) Index() (int, error) {
	t, err := r.token()
	if err != nil {
		return 0, err
	}
	number, ok := t.(json.Number)
	if !ok {
		return 0, Invalidf("%s, want an index", describe(t))
	}
	n, err := strconv.Atoi(string(number))
	if err != nil || n < -1 {
		return 0, Invalidf("%.40s is not an index", number)
	}
	return n, nil
}

// Skip reads and drops a value of any kind.
func (r *Reader) Skip() error { return r.skip(0) }

// skip reads the rest of a value with depth open objects and arrays.
func (r *Reader) skip(depth int) error {
	for {
		t, err := r.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return TooLargef("the request is nested more than %d levels deep", maxDepth)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// End fails if the body has more than one JSON value.
func (r *Reader) End() error {
	_, err := r.d.Token()
	switch {
	case err == io.EOF:
		return nil
	case r.body.err != nil:
		return r.body.err
	}
	return Invalidf("the body has more than one JSON value")
}
