package symbolize

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/idtest"
)

// A stripped Go program must give the answers that it gives with debug information, unless Reaching
// is set: LLVM does not read Go's table.
func TestStrippedGoProgramsNameTheirFunctions(t *testing.T) {
	dir := t.TempDir()
	goBuild := func(name, flags string) fixture {
		f := fixture{path: filepath.Join(dir, name)}
		cmd := exec.Command(tool(t, "go"), "build", "-ldflags="+flags+" -B 0x0123456789abcdef", "-o", f.path, ".")
		cmd.Dir = "../internal/gopcln/testdata/prog"
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux", "GOARCH=amd64")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		f.id = idtest.Of(t, f.path)
		return f
	}
	full, stripped := goBuild("full", ""), goBuild("stripped", "-s -w")
	whole := open(t, Options{}, oneFile{full, "full"})
	s := open(t, Options{}, oneFile{stripped, "stripped"})
	reaching := open(t, Options{Reaching: true}, oneFile{stripped, "stripped"})
	inlined := 0
	for _, name := range []string{"main.main", "main.crash", "main.sum", "sort.Ints", "runtime.mallocgc", "runtime.newstack"} {
		sym, ok := full.symbols(t)[name]
		if !ok {
			continue // inlined everywhere
		}
		for addr := sym.Value; addr < sym.Value+sym.Size; addr++ {
			want, got := code(whole, full.at(addr)), code(s, stripped.at(addr))
			if strings.Contains(want, "[go.shape") {
				continue // instances have one name in the table
			}
			if got != want {
				t.Fatalf("%s+%#x:\n got\n%swant\n%s", name, addr-sym.Value, got, want)
			}
			inlined += strings.Count(got, " inlined")
		}
		if got := code(reaching, stripped.at(sym.Value)); got != "" {
			t.Errorf("as LLVM: %s", got)
		}
	}
	if inlined == 0 {
		t.Error("no inlined call")
	}
}

// MiniDebugInfo names local functions of a stripped library.
func TestMiniDebugInfoNamesLocalFunctions(t *testing.T) {
	tool(t, "xz")
	whole := build(t, "mini", source)
	mini := filepath.Join(t.TempDir(), "mini")
	run(t, "objcopy", "--strip-debug", whole.path, mini)
	run(t, "xz", mini)
	f := whole.variant(t, "--strip-all", "--add-section=.gnu_debugdata="+mini+".xz")
	for name, sym := range whole.symbols(t) {
		if !strings.Contains(name, "local") || sym.Size == 0 {
			continue
		}
		s := open(t, Options{}, oneFile{f, "mini"})
		frames, err := s.Ask(context.Background(), nil, f.at(sym.Value+1), Policy{})
		if err != nil || len(frames) != 1 || frames[0].Linkage != name || frames[0].Offset != 1 {
			t.Errorf("%s: %s, %v", name, text(frames), err)
		}
		if r := s.Report(f.id, "shop.so"); r.Holds != SymbolTable {
			t.Errorf("Report: %v, want %v", r.Holds, SymbolTable)
		}
		return
	}
	t.Error("no local function in the library")
}
