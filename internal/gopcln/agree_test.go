package gopcln

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
)

// open opens a file until the end of the test.
func open(t testing.TB, path string) *object.File {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return openBytes(t, b)
}

func openBytes(t testing.TB, b []byte) *object.File {
	t.Helper()
	f, err := object.Open(bytes.NewReader(b), int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// withoutSections returns the file without section headers, as after sstrip.
func withoutSections(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := openBytes(t, b)
	end := 0
	for _, p := range f.Segments() {
		end = max(end, int(p.Offset+p.FileSize))
	}
	b = bytes.Clone(b[:end])
	shoff, tail, size := 40, b[58:64], 8
	if f.Class == elf.ELFCLASS32 {
		shoff, tail, size = 32, b[46:52], 4
	}
	clear(b[shoff : shoff+size])
	clear(tail)
	return b
}

// goCommand returns the go command for builds: SYMFILTER_TEST_GO may name one of another version.
func goCommand() string {
	if name := os.Getenv("SYMFILTER_TEST_GO"); name != "" {
		return name
	}
	return "go"
}

// build builds testdata/prog with the given arguments and returns the path of the file.
func build(t *testing.T, name, goarch string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command(goCommand(), append(append([]string{"build", "-trimpath", "-o", path}, args...), ".")...)
	cmd.Dir = "testdata/prog"
	cgo := "0"
	if os.Getenv("CC") != "" {
		cgo = "1"
	}
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+goarch, "CGO_ENABLED="+cgo, "GOFLAGS=", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// A program without debug information must give the same frames as the program with debug
// information.
func TestFramesAreThoseOfDebugInformation(t *testing.T) {
	t.Setenv("CC", "")
	if testing.Short() {
		t.Skip("builds programs for several architectures")
	}
	for _, goarch := range []string{"amd64", "arm64", "386", "s390x"} {
		for _, mode := range []string{"exe", "pie"} {
			if mode == "pie" && (goarch == "386" || goarch == "s390x") {
				continue // these need a C compiler
			}
			t.Run(goarch+" "+mode, func(t *testing.T) {
				full := build(t, "full", goarch, "-buildmode="+mode)
				stripped := build(t, "stripped", goarch, "-buildmode="+mode, "-ldflags=-s -w")
				agree(t, open(t, full), open(t, stripped), open(t, full))
				agree(t, open(t, full), openBytes(t, withoutSections(t, stripped)), open(t, full))
			})
		}
	}
}

// The frames must also agree in programs from the C compiler's linker. It places the table among
// other data, and C functions before Go's functions.
func TestFramesOfProgramsLinkedByOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOARCH != "amd64" {
		t.Skip("needs gcc for amd64:", err)
	}
	for _, mode := range []string{"exe", "pie", "c-shared"} {
		t.Run(mode, func(t *testing.T) {
			t.Setenv("CC", "gcc")
			full := build(t, "full", "amd64", "-buildmode="+mode, "-ldflags=-linkmode=external")
			stripped := build(t, "stripped", "amd64", "-buildmode="+mode, "-ldflags=-linkmode=external -s -w")
			agree(t, open(t, full), open(t, stripped), open(t, full))
			agree(t, open(t, full), openBytes(t, withoutSections(t, stripped)), open(t, full))
		})
	}
}

// agree checks that stripped gives the same frames as the debug information of full, at random
// addresses. The names of the outermost functions come from symbols.
func agree(t *testing.T, full, stripped, symbols *object.File) {
	t.Helper()
	dw, err := dwarf.New(full, dwarf.Links{})
	if err != nil {
		t.Fatal(err)
	}
	table, err := New(stripped)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	first, _ := table.entry(0)
	last, _ := table.entry(table.functions)
	const addresses = 20000
	known, inlined, wrong := 0, 0, 0
	var frames []dwarf.Frame
	var got []Frame
	for range addresses {
		addr := first + random.Uint64N(last-first)
		frames, err = dw.Lookup(frames[:0], addr)
		if err != nil {
			t.Fatal(err)
		}
		got = table.Lookup(got[:0], addr)
		sym, _ := symbols.Symbol(addr)
		want := ""
		for i, f := range frames {
			name := string(f.Name)
			if i == len(frames)-1 && len(sym.Name) > 0 {
				name = string(sym.Name)
			}
			want += frameText(name, strings.TrimPrefix(f.File, "./"), f.Line, f.Inlined) // DW_AT_comp_dir is "." with -trimpath
		}
		have := ""
		for _, f := range got {
			have += frameText(string(f.Name), f.File, f.Line, f.Inlined)
		}
		if len(frames) > 0 {
			known++
			if len(frames) > 1 {
				inlined++
			}
		}
		// for a function that the compiler generated, compare only the name: debug information has
		// little about it
		if len(got) > 0 && (len(frames) == 0 || frames[len(frames)-1].File == "") {
			have = frameText(string(got[len(got)-1].Name), "", 0, false)
			want = frameText(string(sym.Name), "", 0, false)
		}
		if have != want {
			if wrong++; wrong < 10 {
				t.Logf("%#x:\n%swant\n%s", addr, have, want)
			}
		}
	}
	t.Logf("%d addresses, %d known, %d with inlined calls, %d differ", addresses, known, inlined, wrong)
	tolerated := 0
	if goCommand() != "go" {
		// Go 1.19 has no debug information for calls inlined into generated methods
		tolerated = addresses / 500
	}
	if known < addresses/2 || inlined < addresses/20 || wrong > tolerated {
		t.Errorf("%d addresses, %d known, %d with inlined calls, %d differ", addresses, known, inlined, wrong)
	}
}

func frameText(name, file string, line uint32, inlined bool) string {
	// Debug information does not distinguish the instances of a generic function, but symbols do.
	// Leave out the type arguments.
	if i, j := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']'); i >= 0 && j > i {
		name = name[:i] + "[...]" + name[j+1:]
	}
	name = strings.ReplaceAll(name, "·", ".")
	name = strings.TrimSuffix(name, ".abi0") // so do the two entries of a function in assembly
	return fmt.Sprintf("  %s %s:%d %v\n", name, file, line, inlined)
}
