//go:build linux

package integration

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Compilers give line 0 to code without a source line. If such code precedes a bare address in the
// same function, the program that logged the address has already subtracted 1. Subtracting 1 again
// would lose the line.
func TestABareAddressBehindLineZeroIsLookedUpAsLogged(t *testing.T) {
	need(t, "clang-19")
	dir := t.TempDir()
	source := filepath.Join(dir, "zero.c")
	if err := os.WriteFile(source, []byte(`
void one(void) {
  asm volatile(".loc 0 0\n nop\n .Lbehind: .loc 0 77\n .globl distance\n .set distance, .Lbehind - one\n nop\n .loc 0 0\n");
}
void two(void) {
  asm volatile("nop\n");
}
void _start(void) { one(); two(); }
`), 0o666); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "zero")
	run(t, nil, "clang-19", "-g", "-O1", "-fno-inline", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-nostdlib", "-static", "-gdwarf-5",
		"-Wl,--build-id=0xabcdef", "-o", program, source)
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]uint64{}
	for _, s := range symbols {
		at[s.Name] = s.Value
	}
	behind := at["one"] + at["distance"]
	log := fmt.Sprintf("{{{module:0:zero:elf:abcdef}}}\n{{{mmap:0x400000:0x10000:load:0:rx:0x400000}}}\n"+
		"{{{bt:1:%#x}}}\n{{{bt:2:%#x:ra}}}\n{{{bt:3:%#x}}}\n", behind, behind, behind+1)
	type frame struct {
		Line int
		Rel  uint64
	}
	var got []frame
	for _, f := range parseFrames(t, run(t, []byte(log), command, "--obj", program)) {
		got = append(got, frame{f.Line, f.Rel})
	}
	want := []frame{{77, behind}, {0, behind - 1}, {77, behind}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
