package object

import (
	"encoding/binary"
	"os"
	"testing"
)

// Main must return the address of main, which the code at the entry loads. It must return 0 for an
// address outside of the code, and ignore an instruction that is cut off.
func TestMainIsWhatTheEntryLoads(t *testing.T) {
	data, err := os.ReadFile("testdata/whole.elf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := openBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := f.Section(".text")
	f.Close()
	for _, test := range []struct {
		name            string
		entry, to, want uint64
	}{
		{"a function", text.Addr, text.Addr + text.Size - 1, text.Addr + text.Size - 1},
		{"outside of the code", text.Addr, text.Addr + 1<<30, 0},
		{"no instruction at the entry", 1 << 40, text.Addr, 0},
	} {
		le := binary.LittleEndian
		le.PutUint64(data[24:], test.entry)
		code := data[text.Offset:]
		copy(code, "\x31\xed\x48\x8d\x3d")
		le.PutUint32(code[5:], uint32(test.to-(text.Addr+9)))
		f, err := openBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Main(); got != test.want {
			t.Errorf("%s: Main() = %#x, want %#x", test.name, got, test.want)
		}
		f.Close()
	}
}
