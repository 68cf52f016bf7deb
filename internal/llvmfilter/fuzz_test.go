package llvmfilter

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/symbolize"
)

// Any log must be filtered within bounds of time and memory, without an error, and in whole lines.
// The size of the blocks must not change the output. Without colour, the output must have no SGR
// sequences except those that LLVM treats as text.
func FuzzLLVMFilter(f *testing.F) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		f.Fatalf("no scripts: %v", err)
	}
	for _, s := range scripts {
		ar, err := txtar.ParseFile(s)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range ar.Files {
			if file.Name == "in" {
				f.Add([]byte(unescape(f, string(file.Data))), byte(1), uint8(7))
			}
		}
	}
	log, err := os.ReadFile(filepath.Join("..", "..", "testdata", "crash.log"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(log, byte(2), uint8(200))
	sym := symbolize.New(symbolize.Options{Reaching: true, OldRustAsLLVM: true, Finders: []symbolize.Finder{buildid.NewTree(inventory)}})
	f.Cleanup(func() {
		if err := sym.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, log []byte, flags byte, cut uint8) {
		defer fuzztest.Watch(t, log)()
		o := Options{Symbolizer: sym, Color: flags&1 != 0, DiagColor: flags&2 != 0, NoDemangle: flags&4 != 0, Paths: Paths(flags >> 3 % 3)}
		filtered := func(size int) (out, said string) {
			var w, d bytes.Buffer
			filter := New(&w, &d, o)
			for rest := log; len(rest) > 0; {
				n := min(size, len(rest))
				if _, err := filter.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := filter.Close(); err != nil {
				t.Fatal(err)
			}
			return w.String(), d.String()
		}
		out, said := filtered(len(log))
		if o, s := filtered(1 + int(cut)); o != out || s != said {
			t.Errorf("in pieces of %d bytes: %s; %s", 1+int(cut), firstDifference(o, out), firstDifference(s, said))
		}
		fuzztest.Growth(t, log, func(log []byte) {
			filter := New(io.Discard, io.Discard, o)
			filter.Write(log)
			filter.Close()
		})
		var flowed bytes.Buffer
		fuzztest.Flow(t, log, New(&flowed, nil, o), flowed.Len, "a line\n", 0)
		if !o.Color && out != "" && out[len(out)-1] != '\n' {
			t.Errorf("the output ends in %q", out[max(0, len(out)-20):])
		}
		if !bytes.ContainsAny(log, "{\x1b") {
			want := string(log)
			if len(log) > 0 && log[len(log)-1] != '\n' {
				want += "\n"
			}
			if out != want || said != "" {
				t.Errorf("text came out as %.1000q, %.1000q", out, said)
			}
		}
	})
}
