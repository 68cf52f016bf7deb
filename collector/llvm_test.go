package collector

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/symfilter/symfilter/internal/idtest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// Random locations in the code of files must get the calls that llvm-symbolizer finds. No location
// may get other names, and at most 5 of 1,000 locations may stay without a name. radosgw, a C++
// program of 460 MB, is included if it is in the folder of the benchmarks.
func TestLocationsAreThoseOfLLVM(t *testing.T) {
	testenv.OnlyLong(t)
	testenv.Need(t, "llvm-symbolizer-19", "/usr/lib/debug/.build-id")
	libc := idtest.Of(t, testenv.Find(t, "/lib/*-linux-gnu/libc.so.6")).String()
	files := []string{filepath.Join("/usr/lib/debug/.build-id", libc[:2], libc[2:]+".debug")}
	if home, err := os.UserHomeDir(); err == nil {
		radosgw := filepath.Join(home, ".cache", "symfilter-bench", "bins", "rgw.debug")
		if _, err := os.Stat(radosgw); err == nil {
			files = append(files, radosgw)
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { compareWithLLVM(t, file, 100_000) })
	}
}

func compareWithLLVM(t *testing.T, file string, n int) {
	addrs := randomCode(t, file, n)
	want, symbols := llvmCalls(t, file, addrs), symbolsOf(t, file)
	c := testConfig()
	c.Symbols.SymbolPaths = []string{file}
	c.Patience.Local = 30 * time.Second
	p := startProfiles(t, c)
	var calls [][]llvmCall
	for batch := range slices.Chunk(addrs, 5000) {
		s := newSample()
		m := s.mapping(file, idtest.Of(t, file).String(), 0, 0, 0)
		for _, addr := range batch {
			s.location(m, addr)
		}
		// On a busy machine, the patience may end before a debug file is read. Its locations then
		// get their names in a later batch.
		for pending := int64(-1); pending != p.shared.locations[locationPending].Load(); {
			pending = p.shared.locations[locationPending].Load()
			p.process(t, s.Profiles)
		}
		for i := range batch {
			calls = append(calls, callsAt(s.dict, i+1))
		}
	}
	var named, equal, aliases, missing int
	var wrong []string
	for i, addr := range addrs {
		got := calls[i]
		if want[i] != nil {
			named++
		}
		switch {
		case slices.Equal(got, want[i]):
			if want[i] != nil {
				equal++
			}
		case got == nil:
			missing++
		case slices.EqualFunc(got, want[i], func(a, b llvmCall) bool { return a.at == b.at && symbols.same(a.function, b.function) }):
			equal++
			aliases++
		default:
			wrong = append(wrong, fmt.Sprintf("%#x\n  ours   %v\n  LLVM's %v", addr, got, want[i]))
		}
	}
	t.Logf("%d locations: llvm-symbolizer names %d; equal %d (%.3f %%), %d of them by another symbol of the function; without a name %d, otherwise %d",
		n, named, equal, 100*float64(equal)/float64(named), aliases, missing, len(wrong))
	if len(wrong) > 0 || float64(equal) < 0.995*float64(named) {
		t.Errorf("named otherwise:\n%s", strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
}

// An llvmCall is a call at a location: the linkage name of the function, and the source position.
// Demangled names are not compared, since demanglers differ in details.
type llvmCall struct{ function, at string }

// symbolValues has the values of a file's symbols by name, without versions.
type symbolValues map[string]uint64

func symbolsOf(t *testing.T, file string) symbolValues {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	values := make(symbolValues)
	for _, s := range all {
		values[unversioned(s.Name)] = s.Value
	}
	return values
}

// same reports whether two names belong to one function: glibc has several symbols for most
// functions.
func (s symbolValues) same(a, b string) bool {
	at, ok := s[a]
	other, known := s[b]
	return a == b || ok && known && at == other
}

func unversioned(symbol string) string {
	name, _, _ := strings.Cut(symbol, "@")
	return name
}

// randomCode returns n different addresses in the code of a file. It leaves out the procedure
// linkage table, for which llvm-symbolizer reports the preceding function.
func randomCode(t *testing.T, file string, n int) []uint64 {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code := slices.DeleteFunc(f.Sections, func(s *elf.Section) bool {
		return s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 || strings.HasPrefix(s.Name, ".plt")
	})
	largest := slices.MaxFunc(code, func(a, b *elf.Section) int { return cmp.Compare(a.Size, b.Size) })
	random := rand.New(rand.NewPCG(1, 2))
	seen := make(map[uint64]bool)
	var all []uint64
	for len(all) < n {
		s := largest
		if random.IntN(100) == 0 { // the other sections are small
			s = code[random.IntN(len(code))]
		}
		if addr := s.Addr + random.Uint64N(s.Size); !seen[addr] {
			seen[addr] = true
			all = append(all, addr)
		}
		if len(seen) == int(largest.Size) {
			t.Fatalf("%s has less than %d addresses", file, n)
		}
	}
	return all
}

// llvmCalls returns the calls at addresses by llvm-symbolizer, the innermost first. An address
// without a function has nil.
func llvmCalls(t *testing.T, file string, addrs []uint64) [][]llvmCall {
	t.Helper()
	var in, stderr strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	cmd := exec.Command("llvm-symbolizer-19", "--obj="+file, "--inlines", "--no-demangle", "--output-style=JSON")
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	var all [][]llvmCall
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var answer struct {
			Symbol []struct {
				FunctionName, FileName string
				Line, Column           int64
			}
		}
		if err := d.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		var calls []llvmCall
		named := false
		for _, s := range answer.Symbol {
			calls = append(calls, llvmCall{cmp.Or(unversioned(s.FunctionName), "??"), placeOf(s.FileName, s.Line, s.Column)})
			named = named || s.FunctionName != ""
		}
		if !named {
			calls = nil
		}
		all = append(all, calls)
	}
	if len(all) != len(addrs) {
		t.Fatalf("%s answers %d of %d addresses", cmd, len(all), len(addrs))
	}
	return all
}

// callsAt returns the calls at a location.
func callsAt(d pprofile.ProfilesDictionary, location int) (calls []llvmCall) {
	str := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, line := range d.LocationTable().At(location).Lines().All() {
		f := d.FunctionTable().At(int(line.FunctionIndex()))
		name := cmp.Or(str(f.SystemNameStrindex()), str(f.NameStrindex()))
		calls = append(calls, llvmCall{unversioned(name), placeOf(str(f.FilenameStrindex()), line.Line(), line.Column())})
	}
	return calls
}

// placeOf returns a source position as text. Without a line it returns "", since llvm-symbolizer
// then takes the file from the symbol table.
func placeOf(file string, line, column int64) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}
