package dwarf

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"debug/elf"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the wanted answers of testdata/tiny anew, as "+llvmSymbolizer+" gives them")

// tinyFiles returns the paths of the committed ELF files.
func tinyFiles(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/tiny/*.elf")
	if err != nil || len(paths) == 0 {
		t.Fatalf("testdata/tiny: no ELF files (%v)", err)
	}
	return paths
}

// describe returns the frames of all addresses, with one line for consecutive addresses with equal
// frames.
func describe(addrs []uint64, frames [][]plainFrame) string {
	var b strings.Builder
	for i := 0; i < len(addrs); {
		first := i
		var names []string
		for _, f := range frames[first] {
			names = append(names, f.String())
		}
		for i++; i < len(addrs) && addrs[i] == addrs[i-1]+1 && cmp.Equal(frames[i], frames[first]); i++ {
		}
		fmt.Fprintf(&b, "%#x-%#x %s\n", addrs[first], addrs[i-1]+1, strings.Join(names, " < "))
	}
	return b.String()
}

func TestTinyFiles(t *testing.T) {
	for _, path := range tinyFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			o := openObject(t, path)
			var addrs []uint64
			for _, s := range o.Sections() {
				if s.Flags&elf.SHF_EXECINSTR != 0 {
					for addr := s.Addr; addr < s.Addr+s.Size; addr++ {
						addrs = append(addrs, addr)
					}
				}
			}
			golden := strings.TrimSuffix(path, ".elf") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(describe(addrs, oracle(t, path, addrs))), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			d, err := New(o, Links{})
			if err != nil {
				t.Fatal(err)
			}
			var got [][]plainFrame
			for _, addr := range addrs {
				frames, err := d.Lookup(nil, addr)
				if err != nil {
					t.Fatalf("address %#x: %v", addr, err)
				}
				got = append(got, withSymbol(o, frames, addr))
			}
			if diff := cmp.Diff(describe(addrs, got), string(want)); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}
