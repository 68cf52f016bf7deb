package buildid

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// maxIDLen is the longest accepted build ID in bytes, a SHA-512. Linkers write IDs of 8 bytes
// (xxHash), 16 (MD5, UUID), 20 (SHA-1) or 32 (SHA-256), and any length with --build-id=0x…. Longer
// IDs are rejected as hostile.
const maxIDLen = 64

// ErrInvalidID is wrapped by errors for bytes or digits that are not a build ID.
var ErrInvalidID = errors.New("not a build ID")

// An ID is a build ID: up to 64 raw bytes. It is comparable and can be the key of a map. The zero
// ID means no ID.
type ID struct {
	s string // raw bytes, not hex
}

// Parse parses hex digits of either case. An odd number of digits gets a leading zero, as in LLVM:
// "abc" is 0abc. The error wraps [ErrInvalidID].
func Parse(digits []byte) (ID, error) {
	n := (len(digits) + 1) / 2
	if n == 0 || n > maxIDLen {
		return ID{}, fmt.Errorf("%w: %d hex digits, want 1 to %d", ErrInvalidID, len(digits), 2*maxIDLen)
	}
	var padded [2 * maxIDLen]byte
	pad := len(digits) % 2
	if pad == 1 {
		padded[0] = '0'
	}
	copy(padded[pad:], digits)
	var raw [maxIDLen]byte
	if _, err := hex.Decode(raw[:n], padded[:2*n]); err != nil {
		return ID{}, fmt.Errorf("%w: %q has characters that are not hex digits", ErrInvalidID, digits)
	}
	return ID{string(raw[:n])}, nil
}

// FromBytes returns the ID with a copy of the raw bytes of a note. The error wraps [ErrInvalidID].
func FromBytes(raw []byte) (ID, error) {
	if len(raw) == 0 || len(raw) > maxIDLen {
		return ID{}, fmt.Errorf("%w: %d bytes, want 1 to %d", ErrInvalidID, len(raw), maxIDLen)
	}
	return ID{string(raw)}, nil
}

// String returns the ID in lower-case hex, with two digits for each byte. The zero ID gives an
// empty string.
func (id ID) String() string {
	var buf [2 * maxIDLen]byte
	return string(id.AppendHex(buf[:0]))
}

// AppendHex appends the result of [ID.String] to dst.
func (id ID) AppendHex(dst []byte) []byte {
	const digits = "0123456789abcdef"
	for i := range len(id.s) {
		dst = append(dst, digits[id.s[i]>>4], digits[id.s[i]&15])
	}
	return dst
}

// IsZero reports whether id is the zero ID, which means no ID.
func (id ID) IsZero() bool { return id.s == "" }

// Len returns the number of raw bytes, 0 to 64.
func (id ID) Len() int { return len(id.s) }

// Bytes returns a copy of the raw bytes.
func (id ID) Bytes() []byte { return []byte(id.s) }
