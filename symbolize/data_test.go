package symbolize

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
)

// manyVariables returns the source of a program with variables of all sizes in all data sections.
func manyVariables(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("struct record { char name[9]; short kind; struct { int low, high; } range; void *next; };\n")
	kinds := []string{"struct record %s[%d]%s", "char %s[%d]%s", "double %s[%d]%s", "struct { struct record a; char pad[3]; } %s[%d]%s"}
	storage := []string{"", "static ", "const ", "static const ", "extern const volatile ", "thread_local "}
	for i := range 600 {
		init := ""
		s := storage[r.IntN(len(storage))]
		if strings.Contains(s, "const") || r.IntN(2) == 0 {
			init = " = {}"
		}
		attr := fmt.Sprintf("__attribute__((used, aligned(%d))) ", 1<<r.IntN(7))
		if strings.HasPrefix(s, "extern") {
			s, attr = strings.TrimPrefix(s, "extern "), "extern "+attr
		}
		fmt.Fprintf(&b, attr+s+kinds[r.IntN(len(kinds))]+";\n", fmt.Sprintf("v%d", i), 1+r.IntN(20), init)
	}
	return b.String()
}

// An nmSymbol is a symbol as nm prints it.
type nmSymbol struct {
	addr, size uint64
	name       string
}

// nmSymbols returns the variables that nm prints, by address, without thread-local variables, which
// have no address.
func nmSymbols(t *testing.T, f fixture) []nmSymbol {
	t.Helper()
	types := f.symbols(t)
	var all []nmSymbol
	for s := bufio.NewScanner(bytes.NewReader(run(t, "nm", "--print-size", "--defined-only", f.path))); s.Scan(); {
		var v nmSymbol
		var kind string
		if n, _ := fmt.Sscanf(s.Text(), "%x %x %s %s", &v.addr, &v.size, &kind, &v.name); n == 4 && strings.Contains("dDbBrR", kind) && elf.ST_TYPE(types[v.name].Info) == elf.STT_OBJECT {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b nmSymbol) int { return cmp.Compare(a.addr, b.addr) })
	return all
}

// dataAddresses is the number of addresses that TestDataIsThatOfNM looks up.
const dataAddresses = 10000

func TestDataIsThatOfNM(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	f := build(t, "variables", manyVariables(r), "-fno-zero-initialized-in-bss", "-Wno-narrowing")
	syms := nmSymbols(t, f)
	if len(syms) < 400 {
		t.Fatalf("nm prints %d variables", len(syms))
	}
	e, err := elf.Open(f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var sections []*elf.Section
	for _, s := range e.Sections {
		switch s.Name {
		case ".data", ".bss", ".rodata", ".data.rel.ro":
			sections = append(sections, s)
		}
	}
	s := open(t, Options{}, oneFile{fixture: f})
	named, members := 0, 0
	for range dataAddresses {
		sec := sections[r.IntN(len(sections))]
		addr := sec.Addr + r.Uint64N(sec.Size)
		want := "nothing"
		i, found := slices.BinarySearchFunc(syms, addr, func(v nmSymbol, a uint64) int { return cmp.Compare(v.addr, a) })
		if !found {
			i--
		}
		if i >= 0 && addr-syms[i].addr < syms[i].size {
			want = fmt.Sprintf("%s+%#x of %d", syms[i].name, addr-syms[i].addr, syms[i].size)
		}
		got := "nothing"
		v, err := s.AskData(context.Background(), f.at(addr), Policy{})
		if err == nil {
			named++
			got = fmt.Sprintf("%s+%#x of %d", v.Linkage, v.Offset, v.Size)
			if v.Member != "" {
				members++
			}
			if v.Offset > 0 && v.Member == "" {
				t.Errorf("%#x: no member of %s+%#x", addr, v.Name, v.Offset)
			}
		} else if !errors.Is(err, ErrNoSymbol) {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%#x: got %s, want %s", addr, got, want)
		}
	}
	t.Logf("%d variables; of %d addresses %d are in one, %d in a member", len(syms), dataAddresses, named, members)
	if named < dataAddresses/3 || members < named/2 {
		t.Errorf("%d of %d addresses have a name, %d a member: they say little", named, dataAddresses, members)
	}
}

// variables is the source of a program with static variables in a struct, a function and a
// namespace.
const variables = `
struct point { int x, y; };
struct entry { char name[12]; point at[2]; int refs; };
namespace shop { entry table[8] = {{"x"}}; static entry hidden[2] = {{"y"}}; }
entry *in_function(int i) { static entry held[3]; held[i].refs++; return i ? held : shop::hidden + i; }
`

func TestDataNamesTheMember(t *testing.T) {
	f := build(t, "vars", variables)
	syms := f.symbols(t)
	var held elf.Symbol
	for name, s := range syms {
		if strings.Contains(name, "held") {
			held = s
		}
	}
	table := syms["_ZN4shop5tableE"]
	bare := f.variant(t, "--strip-symbol=_ZN4shop5tableE", "--strip-symbol="+held.Name)
	tests := []struct {
		name string
		file fixture
		addr uint64
		want string
	}{
		{"the start", f, table.Value, "shop::table"},
		{"a scalar", f, table.Value + 3*32 + 28, "shop::table[3].refs"},
		{"inside of one", f, table.Value + 3*32 + 30, "shop::table[3].refs+0x2"},
		{"nested", f, table.Value + 7*32 + 24, "shop::table[7].at[1].y"},
		{"a static variable of a function", f, held.Value + 32 + 12, "in_function(int)::held[1].at[0].x"},
		{"without its symbol", bare, table.Value + 3*32 + 28, "shop::table[3].refs"},
	}
	for _, tt := range tests {
		s := open(t, Options{}, oneFile{fixture: tt.file})
		v, err := s.AskData(context.Background(), tt.file.at(tt.addr), Policy{})
		got := v.Name + v.Member
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// An index has no variables, so debug information must answer, compressed or not.
func TestDataIsTheSameWithAnIndex(t *testing.T) {
	plain := build(t, "vars", variables)
	addr := plain.symbols(t)["_ZN4shop5tableE"].Value + 3*32 + 28
	for _, f := range []fixture{plain, plain.variant(t, "--compress-debug-sections=zlib")} {
		for _, bare := range []fixture{f, f.variant(t, "--strip-symbol=_ZN4shop5tableE")} {
			dir := t.TempDir()
			if _, err := indexFile(context.Background(), bare.path, access.IndexOptions{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			for name, inline := range map[string]int64{"while a line waits": 1 << 20, "in the background": 0} {
				s := open(t, Options{IndexDir: dir}, oneFile{fixture: bare})
				s.cache.memory.inline = inline
				if v, err := s.AskData(context.Background(), bare.at(addr), Policy{}); v.Name+v.Member != "shop::table[3].refs" || err != nil {
					t.Errorf("%s, inflated %s: got %q, %v", bare.path, name, v.Name+v.Member, err)
				}
				if !indexOf(t, s, bare) {
					t.Errorf("%s has no index", bare.path)
				}
			}
		}
	}
}

// If the file of one module is truncated, other modules still answer.
func TestDataOfATruncatedFile(t *testing.T) {
	f, good := build(t, "vars", variables), build(t, "good", variables)
	addr := f.symbols(t)["_ZN4shop5tableE"].Value + 3*32 + 28
	dir := t.TempDir()
	path := f.place(t, dir)
	good.place(t, dir)
	s := New(Options{Finders: []Finder{buildid.NewTree(dir)}})
	s.cache.memory.wholeUpTo = 0 // a file that was read whole cannot shrink
	defer s.Close()
	ask := func(f fixture) string {
		v, err := s.AskData(context.Background(), f.at(addr), Policy{})
		if err != nil {
			return err.Error()
		}
		return v.Name + v.Member
	}
	if _, err := s.Ask(context.Background(), nil, f.at(addr), Policy{}); err != nil { // opens the file
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := ask(f); !strings.Contains(got, object.ErrFault.Error()) {
			t.Errorf("truncated: got %s, want %v", got, object.ErrFault)
		}
		if got := ask(good); got != "shop::table[3].refs" {
			t.Errorf("the other: got %s", got)
		}
	}
}
