package profile

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The wire format of protocol buffers: a message is a list of fields, each with a number and a
// type.
const (
	numberType = 0
	wide64Type = 1
	bytesType  = 2
	wide32Type = 5
)

var errWire = errors.New("damaged: a field has no valid number or type")

// A field is one field of a message in the wire format.
type field struct {
	number int
	kind   int    // numberType, …
	value  uint64 // value of a number
	data   []byte // the bytes of a string, a message, or packed numbers
}

// nextField returns the first field of a message, and the rest of the message.
func nextField(message []byte) (f field, rest []byte, err error) {
	key, n := binary.Uvarint(message)
	if n <= 0 || key>>3 == 0 || key>>3 > 1<<29 {
		return f, nil, damage(n)
	}
	f.number, f.kind = int(key>>3), int(key&7)
	message = message[n:]
	switch f.kind {
	case numberType:
		if f.value, n = binary.Uvarint(message); n <= 0 {
			return f, nil, damage(n)
		}
		return f, message[n:], nil
	case bytesType:
		size, n := binary.Uvarint(message)
		if n <= 0 {
			return f, nil, damage(n)
		}
		message = message[n:]
		if size > uint64(len(message)) {
			return f, nil, fmt.Errorf("%w: a field of %d bytes has only %d", ErrCut, size, len(message))
		}
		f.data = message[:size]
		return f, message[size:], nil
	case wide64Type, wide32Type:
		size := 8
		if f.kind == wide32Type {
			size = 4
		}
		if len(message) < size {
			return f, nil, ErrCut
		}
		return f, message[size:], nil
	}
	return f, nil, errWire
}

// damage returns the error for the result n of binary.Uvarint.
func damage(n int) error {
	if n == 0 {
		return ErrCut
	}
	return errWire
}

// eachField calls the function use for each field of a message.
func eachField(message []byte, use func(f field) error) error {
	for len(message) > 0 {
		f, rest, err := nextField(message)
		if err == nil {
			err = use(f)
		}
		if err != nil {
			return err
		}
		message = rest
	}
	return nil
}

// numbers calls the function use for each number of a repeated field, which may be packed.
func (f *field) numbers(use func(n uint64) error) error {
	if f.kind == numberType {
		return use(f.value)
	}
	if f.kind != bytesType {
		return errWire
	}
	for rest := f.data; len(rest) > 0; {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return errWire
		}
		if err := use(n); err != nil {
			return err
		}
		rest = rest[size:]
	}
	return nil
}
