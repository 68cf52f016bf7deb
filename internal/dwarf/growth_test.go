package dwarf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
)

// unitSource is the source of one unit of a large program.
const unitSource = `
static inline __attribute__((always_inline)) int inner_%[1]d(int x) { volatile int y = x; return y * %[1]d; }
static __attribute__((noinline)) int other_%[1]d(int x) { return inner_%[1]d(x) + inner_%[1]d(x + 1); }
int f%[1]d(int x) { return other_%[1]d(x) - inner_%[1]d(x); }
`

// lookupCost is the cost of one lookup.
type lookupCost struct {
	Read  int64 // bytes of units
	Steps int
	Units int // parsed units
}

// A lookup must cost the same in a program with twice as many units. Once the tables of the whole
// file are complete, it must read only its own unit.
func TestCostDoesNotGrowWithTheProgram(t *testing.T) {
	fuzztest.WithoutRace(t)
	const units = 32
	dir := t.TempDir()
	var sources []string
	for i := range units {
		name := fmt.Sprintf("u%02d.c", i)
		sources = append(sources, name)
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, unitSource, i+10), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, cc := range []string{"gcc", "clang-19"} { // with and without .debug_aranges
		t.Run(cc, func(t *testing.T) {
			inDir(t, dir, cc+" -g -O2 -fPIC -c "+strings.Join(sources, " "))
			var costs [2][]lookupCost
			for k, n := range []int{units / 2, units} {
				inDir(t, dir, cc+" -shared -o prog.so "+strings.ReplaceAll(strings.Join(sources[:n], " "), ".c", ".o"))
				o := openObject(t, filepath.Join(dir, "prog.so"))
				at := make(map[string]object.Symbol)
				for s := range o.Symbols() {
					at[string(s.Name)] = s
				}
				d, err := New(o, Links{})
				if err != nil {
					t.Fatal(err)
				}
				look := func(name string, rel uint64) {
					t.Helper()
					s, ok := at[name]
					if !ok || rel >= s.Size {
						t.Fatalf("no %s+%d", name, rel)
					}
					if frames, err := d.Lookup(nil, s.Addr+rel); err != nil || len(frames) == 0 {
						t.Fatalf("%s: %d frames, %v", name, len(frames), err)
					}
				}
				for range coldLookups + 1 {
					look("f10", 0)
				}
				for i := 11; i < 11+units/4; i++ {
					for _, name := range []string{"f%d", "other_%d", "f%d", "f%d"} { // f%d and other_%d are looked up first, then f%d as known code
						before := d.units.len()
						d.Read()
						look(fmt.Sprintf(name, i), 1)
						costs[k] = append(costs[k], lookupCost{d.Read(), maxWork - d.work, d.units.len() - before})
					}
				}
			}
			if diff := cmp.Diff(costs[1], costs[0]); diff != "" {
				t.Errorf("-in %d units +in %d:\n%s", units, units/2, diff)
			}
			if c := costs[0][0]; c.Read == 0 || c.Steps == 0 || c.Units != 1 {
				t.Errorf("the first lookup in a unit is said to cost %+v", c)
			}
			if c := costs[0][3]; c.Read > nameBytes || c.Units != 0 {
				t.Errorf("a lookup in a unit that is known is said to cost %+v", c)
			}
		})
	}
}
