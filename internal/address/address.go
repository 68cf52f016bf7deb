// Package address parses places in ELF files: addresses, ranges of addresses, symbols with offsets,
// and offsets in a file. Each may follow the name of a file.
//
// Examples are main+0x10 of gdb, do_fault+0x30/0x160 of Linux, and /usr/bin/app(main+0x10)
// [0x4011b6] of glibc.
package address

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxRange bounds a range, in bytes. Each address of a range is looked up: 1 MiB of symfilter's own
// code takes 1.7 s.
const MaxRange = 1 << 20

// A Word is a parsed address, range, symbol or offset.
type Word struct {
	Module string // path or build ID; empty: the caller names the file
	Name   string // linkage name of a symbol; empty: Addr counts from the beginning of the file
	Addr   uint64 // with a Name: the offset from the symbol
	End    uint64 // the first address after a range; 0: one address
	Size   uint64 // bytes that the symbol had where the word was printed; 0: not known
	InFile bool   // Addr and End are offsets in the file
}

// A Reader parses words. The zero value requires a file name in each word.
type Reader struct {
	// IsModule reports whether the word before a + or a parenthesis names a file, not a symbol. If
	// IsModule is nil, that word always names a file, and Read rejects words without a file.
	IsModule func(word string) bool
	InFile   bool // numbers without a symbol are offsets in the file
}

const offsetPrefix = "offset:"

// Read parses a word. It ignores blanks around the word, and a last part in square brackets: glibc
// prints an address there, and Linux the name of a module.
func (r *Reader) Read(word string) (Word, error) {
	s := withoutBrackets(strings.TrimSpace(word))
	if s == "" {
		return Word{}, errors.New("there is no address")
	}
	w, ok, err := r.module(s)
	if ok || err != nil {
		return w, err
	}
	w.InFile = r.InFile
	if rest, ok := strings.CutPrefix(s, offsetPrefix); ok {
		if s, w.InFile = rest, true; !startsAsNumber(s) {
			return w, fmt.Errorf("%q is not an offset: write hex digits after %s, such as %s0x1a25", rest, offsetPrefix, offsetPrefix)
		}
	}
	isNumber, err := w.number(s)
	switch {
	case err != nil:
		return w, err
	case r.IsModule == nil:
		return w, fmt.Errorf("%q names no file: write FILE+0x1a25, or a FILE before the addresses", s)
	case isNumber:
		return w, nil
	case startsAsNumber(s):
		return w, fmt.Errorf("%q is not an address: write hex digits, such as 0x1a25", s)
	}
	return w, w.symbol(s)
}

func withoutBrackets(s string) string {
	if i := strings.LastIndex(s, " ["); i > 0 && strings.HasSuffix(s, "]") {
		return strings.TrimSpace(s[:i])
	}
	return s
}

// module reads FILE+0x10, FILE+0x10-0x20, FILE(+0x10) and FILE(NAME+0x10). ok is false if s has
// another form, or begins with a symbol.
func (r *Reader) module(s string) (w Word, ok bool, err error) {
	if inner, isPair := strings.CutSuffix(s, ")"); isPair {
		i := strings.LastIndexByte(inner, '(')
		if i > 0 && strings.Contains(inner[i:], "+0x") && r.isModule(inner[:i]) {
			w.Module, inner = inner[:i], inner[i+1:]
			if rest, isNumber := strings.CutPrefix(inner, "+"); isNumber {
				w.InFile = r.InFile
				_, err = w.number(rest)
			} else {
				err = w.symbol(inner)
			}
			return w, true, err
		}
	}
	i := strings.LastIndexByte(s, '+')
	if i <= 0 || !r.isModule(s[:i]) {
		return w, false, nil
	}
	rest := s[i+1:]
	if !strings.HasPrefix(rest, "0x") {
		return w, true, fmt.Errorf("%q is not an address: write 0x and hex digits after %s+", rest, s[:i])
	}
	if strings.Contains(rest, "/") {
		return w, true, fmt.Errorf("%q is in a function, which may be in any file: write the FILE before the addresses", s)
	}
	w.Module, w.InFile = s[:i], r.InFile
	if isNumber, err := w.number(rest); err != nil || !isNumber {
		if err == nil {
			err = fmt.Errorf("%q is not an address: write hex digits, such as 0x1a25", rest)
		}
		return w, true, err
	}
	return w, true, nil
}

func (r *Reader) isModule(word string) bool { return r.IsModule == nil || r.IsModule(word) }

// number reads an address or a range into w. ok is false if s has another form.
func (w *Word) number(s string) (ok bool, err error) {
	from, to, isRange := strings.Cut(s, "-")
	w.Addr, err = hex(from)
	if isRange && (err == nil || errors.Is(err, errTooLarge)) {
		var toErr error
		if w.End, toErr = hex(to); errors.Is(toErr, errNoHex) {
			return false, nil
		}
		if err == nil {
			err = toErr
		}
	}
	switch {
	case errors.Is(err, errNoHex):
		return false, nil
	case err != nil:
		return true, fmt.Errorf("the address %s has %w", s, err)
	case !isRange:
		return true, nil
	case w.End <= w.Addr:
		return true, fmt.Errorf("the range %s is empty: write an end after its start, since the end is excluded", s)
	case w.End-w.Addr > MaxRange:
		return true, fmt.Errorf("the range %s has %d addresses, and the limit is 0x%x: split the range", s, w.End-w.Addr, MaxRange)
	}
	return true, nil
}

// symbol reads NAME, NAME+0x10 or NAME+0x10/0x40. An offset without 0x is decimal, as gdb prints
// it. A + without an offset after it is part of the name.
func (w *Word) symbol(s string) error {
	w.Name = s
	i := strings.LastIndexByte(s, '+')
	if i <= 0 {
		return nil
	}
	offset, size, hasSize := strings.Cut(s[i+1:], "/")
	addr, err := cNumber(offset)
	if err == nil && hasSize {
		w.Size, err = cNumber(size)
	}
	switch {
	case err == nil:
		w.Name, w.Addr = s[:i], addr
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("the offset in %s has %w", s, err)
	case startsAsNumber(offset):
		return fmt.Errorf("%q is not an offset: write 0x before hex digits, as in %s+0x1a", s[i+1:], s[:i])
	}
	return nil
}

var (
	errNoHex    = errors.New("no number")
	errTooLarge = errors.New("more than 64 bits")
)

// hex parses hex digits, with or without 0x.
func hex(s string) (uint64, error) {
	if len(s) > 2 && (s[:2] == "0x" || s[:2] == "0X") {
		s = s[2:]
	}
	return parse(s, 16)
}

// cNumber parses hex digits after 0x, or decimal digits.
func cNumber(s string) (uint64, error) {
	if rest, ok := strings.CutPrefix(s, "0x"); ok {
		return parse(rest, 16)
	}
	return parse(s, 10)
}

func parse(s string, base int) (uint64, error) {
	n, err := strconv.ParseUint(s, base, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return math.MaxUint64, errTooLarge
	case err != nil:
		return 0, errNoHex
	}
	return n, nil
}

// startsAsNumber reports whether s begins with a digit. No compiler begins a symbol's name with
// one.
func startsAsNumber(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }
