package disasm

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// If a listing for x86 begins within an instruction, as in an oops, an instruction must still begin
// at the failed offset.
func TestLinesOfX86(t *testing.T) {
	got := Lines(X86, bytesOf(t, "00 00 0f 1f 44 00 00 48 8b 07 48 89 50 10 c3 48 83 04 25 08 00"), 10)
	want := []string{
		"   0:  00 00                   add %al,(%rax)",
		"   2:  0f 1f 44 00 00          nopl (%rax,%rax)",
		"   7:  48 8b 07                mov (%rdi),%rax",
		"   a:* 48 89 50 10             mov %rdx,0x10(%rax)  <-- trapping instruction",
		"   e:  c3                      retq",
		"   f:  48 83 04 25 08 00       (cut off)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// no earlier offset leads to the failed instruction
	if got := Lines(X86, bytesOf(t, "48 b8 0f 0b"), 2); got[0] != "   2:* 0f 0b                   ud2  <-- trapping instruction" {
		t.Errorf("got %q", got)
	}
}

func TestLinesOfArm64(t *testing.T) {
	var code []byte
	for _, word := range []uint32{0xa9bf7bfd, 0x910003fd, 0xf9000001, 0xffffffff} {
		code = binary.LittleEndian.AppendUint32(code, word)
	}
	got := Lines(Arm64, code, 8)
	want := []string{
		"   0:  a9bf7bfd                stp x29, x30, [sp,#-16]!",
		"   4:  910003fd                mov x29, sp",
		"   8:* f9000001                str x1, [x0]  <-- trapping instruction",
		"   c:  ffffffff                (bad)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Lines must mark exactly one instruction, and must return at most one line for each byte, whatever
// the bytes are.
func FuzzLines(f *testing.F) {
	f.Add([]byte("\x48\x89\x50\x10\xc3"), uint8(1), false)
	f.Add([]byte("\x66\x66\x66\x2e\x0f\x1f\x84\x00"), uint8(3), true)
	f.Fuzz(func(t *testing.T, code []byte, at uint8, arm bool) {
		if len(code) > 512 || int(at) >= len(code) {
			return
		}
		machine := X86
		if arm {
			machine, code, at = Arm64, code[:len(code)&^3], at&^3
			if int(at) >= len(code) {
				return
			}
		}
		lines := Lines(machine, code, int(at))
		marked := 0
		for _, line := range lines {
			marked += strings.Count(line, "<-- trapping instruction")
		}
		if marked != 1 || len(lines) > len(code) {
			t.Errorf("%d lines, of which %d are marked", len(lines), marked)
		}
	})
}

// Begins must recognize the offsets at which instructions begin, in code that begins with endbr64.
func TestBegins(t *testing.T) {
	code := bytesOf(t, "f3 0f 1e fa 53 e8 3a 00 00 00 89 c3 0f af c6 c3")
	var got []int
	for at := range len(code) + 2 {
		begins, known := Begins(code, at)
		if !known {
			t.Errorf("at %d: not known", at)
		}
		if begins {
			got = append(got, at)
		}
	}
	if diff := cmp.Diff([]int{0, 4, 5, 10, 12, 15, 16}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if begins, known := Begins(bytesOf(t, "06 90 90"), 2); begins || known { // not an instruction of 64 bits
		t.Errorf("after an unknown instruction: %t, %t", begins, known)
	}
}
