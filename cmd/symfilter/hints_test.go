package main

import (
	"strings"
	"testing"
)

func TestFilesThatAreNoLogs(t *testing.T) {
	elf := func(kind string) string { return "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + kind + "\x00\x3e" }
	for _, test := range []struct{ name, begins, want string }{
		{"a program", elf("\x03\x00"), "is an ELF file, not a log, and was printed unchanged; to use its symbols, write --symbol-path x"},
		{"of the other byte order", elf("\x00\x02"), "is an ELF file, not a log, and was printed unchanged; to use its symbols, write --symbol-path x"},
		{"a core file", elf("\x04\x00"), "is a core file, not a log, and was printed unchanged; use gdb to read it"},
		{"of the other byte order", elf("\x00\x04"), "is a core file, not a log, and was printed unchanged; use gdb to read it"},
		{"too short", "\x7fELF\x04\x04", ""},
		{"a log", "\x7fElf and 17 other bytes", ""},
	} {
		var s sniffer
		s.look([]byte(test.begins))
		s.look([]byte("{{{reset}}}\n"))
		if got := s.hint("x", ""); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// Nothing is claimed of an input that was not read to its end.
func TestSnifferIsBounded(t *testing.T) {
	var s sniffer
	s.look([]byte("#0  0x0000555555555139 in ?? ()\n"))
	if s.hint("x", "") == "" {
		t.Fatal("no hint")
	}
	s.look(make([]byte, maxSniffed))
	if got := s.hint("x", ""); got != "" {
		t.Errorf("got %q", got)
	}
}
