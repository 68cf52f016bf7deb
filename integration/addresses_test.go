//go:build linux

package integration

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A stripped program is loaded at a random address, and prints only addresses. The calls before
// these addresses must prove the load base of the file in --image. For another build, or with only
// two frames, no base must be found.
func TestAddressesAloneShowTheBaseOfTheirProgram(t *testing.T) {
	need(t, "gcc", "strip", "objcopy")
	dir := t.TempDir()
	build := func(name string, flags ...string) string {
		file := filepath.Join(dir, name)
		source := filepath.Join(checkout, "integration", "testdata", "twin", "bare.c")
		run(t, nil, "gcc", append(flags, "-g", "-static-pie", "-fPIE", "-Wl,--build-id", source, "-o", file)...)
		return file
	}
	whole, other, program := build("whole", "-O1"), build("other", "-O0"), filepath.Join(dir, "program")
	run(t, nil, "strip", "--strip-all", "-o", program, whole)
	out, err := producers.output(t, exec.Command(program))
	if err != nil {
		t.Fatal(err)
	}
	log := string(out)
	head, frames, _ := strings.Cut(log, "\n")
	base := strings.TrimPrefix(head, "base ")

	want := run(t, out, command, "--image", whole+"@"+base)
	if !strings.Contains(want, "settle ") || !strings.Contains(want, " main ") || strings.Contains(want, "unknown") {
		t.Fatalf("with the base:\n%s", want)
	}
	if got := run(t, out, command, "--image", whole); got != want {
		t.Errorf("with the base (-), without (+):\n%s", cmp.Diff(want, got))
	}
	if _, messages := explained(t, log, "--explain", "--image", whole); !strings.Contains(messages, whole+" was loaded at "+base+": calls end at ") {
		t.Errorf("--explain:\n%s", messages)
	}
	folder := filepath.Join(dir, "folder")
	run(t, nil, "mkdir", folder)
	run(t, nil, "cp", whole, other, program, folder)
	for _, args := range [][]string{{"--symbol-path", folder}, {"--image", folder}, {"--symbol-path", whole}} {
		if got := run(t, out, command, args...); got != want {
			t.Errorf("with the base (-), with %s (+):\n%s", args, cmp.Diff(want, got))
		}
	}
	file := filepath.Join(dir, "log")
	if err := os.WriteFile(file, out, 0o644); err != nil {
		t.Fatal(err)
	}
	which := func(log string) string {
		cmd := exec.Command(command, "doctor", "--which", log, folder)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // exits with 1 unless exactly one build fits
		return string(out)
	}
	if got, want := which("log"), "next: symfilter --image "+folder+"/whole log\n"; !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "fits ") {
		t.Errorf("doctor --which, whose last line should be %q:\n%s", want, got)
	}
	run(t, nil, "objcopy", "--remove-section", ".note.gnu.build-id", whole, filepath.Join(folder, "copy"))
	got, messages := explained(t, log, "--explain", "--symbol-path", folder)
	if said := "nothing shows which of the two ran"; got != log || !strings.Contains(messages, said) {
		t.Errorf("with two files that fit:\n%s--explain:\n%s", got, messages)
	}
	if got, want := which("log"), "3 builds were tried, and 2 fit: the log does not show which one wrote it\n"; !strings.HasSuffix(got, want) {
		t.Errorf("doctor --which, whose last line should be %q:\n%s", want, got)
	}
	if got := run(t, out, command, "--image", other); got != log {
		t.Errorf("another build (-), filtered (+):\n%s", cmp.Diff(log, got))
	}
	two := strings.Join(strings.SplitAfter(frames, "\n")[:2], "")
	got, messages = explained(t, two, "--explain", "--image", whole)
	if said := "too few return addresses show where " + whole + " was loaded"; got != two || !strings.Contains(messages, said) {
		t.Errorf("two frames become:\n%s--explain:\n%s", got, messages)
	}
}

// A log names a function whose name only the separate debug file has. If the function's offset in
// the log fits the address, the name must prove the stripped file. Otherwise the frame must have no
// answer.
func TestNamesOfTheDebugFileProveAStrippedFile(t *testing.T) {
	need(t, "gcc", "objcopy", "strip")
	dir := t.TempDir()
	source, whole, library := filepath.Join(dir, "lib.c"), filepath.Join(dir, "whole"), filepath.Join(dir, "libhidden.so")
	code := "__attribute__((noinline)) static int hidden(int n) { return n > 7 ? n * n : hidden(n + 1); }\nint shown(int n) { return hidden(n) + hidden(2 * n); }\n"
	if err := os.WriteFile(source, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "gcc", "-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-ffile-prefix-map="+dir+"=/src", source, "-o", whole)
	id := buildIDOf(t, whole)
	if err := os.MkdirAll(filepath.Join(dir, ".build-id", id[:2]), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "objcopy", "--only-keep-debug", whole, filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug"))
	run(t, nil, "strip", "--strip-all", "-o", library, whole)
	file, err := elf.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := symbols[slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "hidden" })].Value
	for off, answer := range map[uint64]string{0: " /src/lib.c:1", 16: ""} {
		log := fmt.Sprintf("prog 123 1.0: cycles:\n\t    %x hidden+0x4 (%s)\n\n", 0x7f0012340000+at+4+off, library)
		want := strings.Replace(log, ")\n", ")"+answer+"\n", 1)
		if got := run(t, []byte(log), command, "--debug-file-directory", dir); got != want {
			t.Errorf("%d bytes away (-want +got):\n%s", off, cmp.Diff(want, got))
		}
	}
}

// Each answer must fit the schema. Answers with inlined calls, frames from a symbol alone,
// variables and reasons must occur.
func TestAnswersForAddressesFitTheirSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL(filepath.Join("..", "cmd", "symfilter", "addr.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, args := range []string{
		"../testdata/debug/.build-id/ee/cd138796b4297ca7ee7bb08854e1173fee4bff.debug 1a25 999999",
		"779e1ed32e11627838c3d1658cabab0af2a008bd 4158 1df8",
		"../internal/object/testdata/big.elf 18",
		"../internal/object/testdata/stripped.elf 28c 2000 ffffffffffffffff",
		"0102030405 0",
		"../testdata/debug/.build-id/ee/cd138796b4297ca7ee7bb08854e1173fee4bff.debug _ZN6ledger4Book5closeEv+0x15/0x30 nobody 0x1a20-0x1a3c offset:0x1",
		"nowhere+0x10",
	} {
		out := run(t, nil, command, append([]string{"addr", "--output=json", "-s", "../testdata/debug"}, strings.Fields(args)...)...)
		for line := range strings.Lines(out) {
			object, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
			if err == nil {
				err = schema.Validate(object)
			}
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			for _, kind := range []string{"frames", "variable", "reason"} {
				if _, ok := object.(map[string]any)[kind]; ok {
					seen[kind]++
				}
			}
		}
	}
	if seen["frames"] != 8 || seen["variable"] != 1 || seen["reason"] != 7 {
		t.Errorf("got %v, want 8 objects with frames, 1 with a variable, 7 with reasons", seen)
	}
}
