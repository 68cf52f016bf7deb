package symbolize

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/idtest"
)

// The same program has the same functions, lines and inlined calls on every architecture:
// testdata/arch/frames.txt has the frames of all its addresses.
func TestEveryArchitectureResolvesAlike(t *testing.T) {
	want, err := os.ReadFile("testdata/arch/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/arch/*.elf")
	if err != nil || len(paths) < 11 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".elf"), func(t *testing.T) {
			f := fixture{path: path, id: idtest.Of(t, path)}
			s := open(t, Options{}, oneFile{f, "arch"})
			e, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			seen := make(map[string]bool)
			for name, sym := range f.symbols(t) {
				if name != "outer" && name != "local" {
					continue
				}
				start := sym.Value
				if e.Machine == elf.EM_ARM {
					start &^= 1
				}
				for addr := start; addr < start+sym.Size; addr++ {
					got := code(s, f.at(addr))
					if lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n"); !strings.HasPrefix(lines[len(lines)-1], name+" ") {
						t.Errorf("%#x, in %s: %s", addr, name, got)
					}
					// leave out the column, and sort the frames later: columns and the order of
					// instructions depend on the compiler
					var chain []string
					for line := range strings.Lines(got) {
						fields := strings.Fields(line)
						where := strings.Split(fields[1], ":")
						chain = append(chain, fields[0]+" "+where[0]+":"+where[1])
					}
					// Which instructions have the first or the last line of a function, or no line,
					// depends on the compiler, too. On ppc64le, the entry point for calls from
					// other files precedes the function's first row.
					switch line := chain[len(chain)-1]; {
					case e.Machine == elf.EM_PPC64 && addr < start+8, strings.HasSuffix(line, ":0"), strings.HasSuffix(line, ":17"), strings.HasSuffix(line, ":22"):
					default:
						seen[strings.Join(chain, " < ")] = true
					}
				}
			}
			var b bytes.Buffer
			for _, line := range slices.Sorted(maps.Keys(seen)) {
				fmt.Fprintln(&b, line)
			}
			if b.String() != string(want) {
				t.Errorf("got\n%swant\n%s", b.String(), want)
			}
		})
	}
}
