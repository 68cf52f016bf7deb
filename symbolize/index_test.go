package symbolize

import (
	"context"
	"debug/elf"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// indexSource has two units with common functions, each in its own section, so a unit's code is not
// contiguous.
const indexSource = source + `
#include <vector>
#include <string>
#include <map>
namespace {
struct visitor { std::map<std::string, std::vector<int>> seen; void add(const std::string &k, int v) { seen[k].push_back(v); } };
}
extern "C" int visit(const char *s, int n) {
  visitor v;
  for (int i = 0; i < n; i++) v.add(std::string(s + i % 3), i);
  int sum = 0;
  for (auto &e : v.seen) for (int x : e.second) sum += x;
  auto each = [&](int k) { struct in { static int twice(int y) { return shop::sink * y; } }; return in::twice(k) + sum; };
  return each(n) + each(sum);
}
`

// indexFixtures returns the files for which answers with and without an index are compared.
func indexFixtures(t *testing.T) map[string]string {
	files := make(map[string]string)
	for name, flags := range map[string][]string{
		"gcc O2":             {"-O2", "-g"},
		"gcc O0":             {"-O0", "-g"},
		"gcc O2 gc-sections": {"-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"},
		"gcc dwarf4":         {"-O2", "-gdwarf-4"},
		"gcc dwarf5 64-bit":  {"-O1", "-gdwarf-5", "-gdwarf64"},
		"gcc zlib":           {"-O2", "-g", "-gz=zlib"},
		"gcc no inlining":    {"-O3", "-g", "-fno-inline"},
	} {
		files[name] = build(t, name, indexSource, flags...).path
	}
	small, err := filepath.Glob("../internal/object/testdata/*.elf")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range small {
		files[filepath.Base(path)] = path
	}
	if big := os.Getenv("SYMFILTER_INDEX_TEST"); big != "" { // a developer's own files, separated as in PATH
		for _, path := range filepath.SplitList(big) {
			files[path] = path
		}
	}
	return files
}

// codeAddresses returns random addresses in each code section of a file, and all addresses of a
// small section. It adds the addresses around the ends of n symbols.
func codeAddresses(t *testing.T, path string, n int) (addrs []uint64) {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := rand.New(rand.NewPCG(3, 3))
	var code []*elf.Section
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Size > 0 {
			code = append(code, s)
		}
	}
	for _, s := range code {
		if s.Size <= uint64(n) {
			for a := range s.Size + 2 {
				addrs = append(addrs, s.Addr+a-1)
			}
			continue
		}
		for range n {
			addrs = append(addrs, s.Addr+r.Uint64N(s.Size))
		}
	}
	symbols, _ := f.Symbols()
	r.Shuffle(len(symbols), func(i, j int) { symbols[i], symbols[j] = symbols[j], symbols[i] })
	for _, s := range symbols[:min(len(symbols), n)] {
		addrs = append(addrs, s.Value-1, s.Value, s.Value+s.Size-1, s.Value+s.Size)
	}
	return append(addrs, 0, 1<<64-1)
}

// readID returns the build ID of a file, and whether it has one.
func readID(t *testing.T, path string) (buildid.ID, bool) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	id, err := buildid.Read(f, info.Size())
	return id, err == nil
}

func TestIndexSaysWhatDebugInformationDoes(t *testing.T) {
	options := map[string]Options{
		"":                 {},
		"mangled":          {NoDemangle: true},
		"no inlines":       {NoInlines: true},
		"as LLVM":          {Reaching: true},
		"short names":      {Names: ShortNames},
		"Valgrind's names": {Names: ValgrindNames},
		"no names":         {Names: NoNames},
	}
	for name, path := range indexFixtures(t) {
		t.Run(name, func(t *testing.T) {
			id, ok := readID(t, path)
			dir := t.TempDir()
			done, err := indexFile(context.Background(), path, access.IndexOptions{Dir: dir, Workers: 2})
			if !ok {
				if err == nil {
					t.Fatal("a file without a build ID was indexed")
				}
				return
			}
			if err != nil {
				if name == "stripped.elf" {
					return
				}
				t.Fatal(err)
			}
			if done.ID != id.String() || done.Size == 0 || done.Found {
				t.Errorf("got %+v", done)
			}
			addrs := codeAddresses(t, path, fuzztest.LongOr(5000, 1000))
			for name, o := range options {
				plain := open(t, o, oneFile{fixture: fixture{path: path}})
				o.IndexDir = dir
				indexed := open(t, o, oneFile{fixture: fixture{path: path}})
				known := 0
				for _, addr := range addrs {
					l := Location{ID: id, Addr: addr}
					want, wantErr := plain.Ask(context.Background(), nil, l, Policy{})
					got, gotErr := indexed.Ask(context.Background(), nil, l, Policy{})
					if !slices.Equal(got, want) || gotErr != wantErr {
						t.Fatalf("%s %#x: -got +want:\n%s\n%v, %v", name, addr, cmp.Diff(got, want), gotErr, wantErr)
					}
					if len(want) > 0 && want[0].HasLine {
						known++
					}
				}
				if known < len(addrs)/20 {
					t.Errorf("%s: %d of %d addresses have a line", name, known, len(addrs))
				}
				e, err := indexed.cache.entry(id, "")
				if err != nil {
					t.Fatal(err)
				}
				if used := e.module.index != nil; used != (o.Names != ShortNames && o.Names != ValgrindNames) {
					t.Errorf("%s: index in use: %v", name, used)
				}
				if e.module.index != nil && e.module.dw.Footprint() > 0 {
					t.Errorf("%s: debug information was read beside the index", name)
				}
			}
		})
	}
}
