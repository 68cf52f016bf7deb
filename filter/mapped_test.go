package filter

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/symfilter/symfilter/buildid"
)

// An address without a module, or with a module but no base, must be looked up in the maps of its
// process. Facts in the log must take precedence over these maps.
func TestAddressesAreLookedUpInTheMapsOfTheirProcess(t *testing.T) {
	id, err := buildid.Parse([]byte("a0a1a2a3a4a5a6a7"))
	if err != nil {
		t.Fatal(err)
	}
	const (
		start   = "thread 'main' panicked at src/main.rs:1:1:\nstack backtrace:\n"
		alone   = start + "   0:           0x40018d - <unknown>\n"
		named   = "[bt] ./a.out() [0x40018d]\n"
		other   = "[bt] ./b.out() [0x40018d]\n"
		offset  = "./a.out(+0x18d) [0x40018d]\n"
		mapped  = "00400000-00402000 r-xp 00000000 fe:01 7  /none/of/the/log\n" + start + "   0:           0x40018d - <unknown>\n"
		process = "process"
	)
	program := ProcessMapping{Start: 0x400000, End: 0x402000, Base: 0x400000, Path: "/opt/shop/a.out", PID: 7, ID: id}
	predictable := program
	predictable.Predictable = true
	for _, c := range []struct {
		name, log string
		mapping   ProcessMapping
		want      string // proof of the only answer; empty: the log is unchanged
	}{
		{"an address alone", alone, program, process},
		{"a program by name", named, program, process},
		{"an offset and an address", offset, program, process},
		{"an address that any program may have", alone, predictable, ""},
		{"such an address and a program by name", named, predictable, ""},
		{"another program's name", other, program, ""},
		{"a map in the log", mapped, program, ""},
		{"no mapping", alone, ProcessMapping{Start: 0x7f0000000000, End: 0x7f0000001000, Path: "/lib/x.so", ID: id}, ""},
		{"a build that nobody has", alone, ProcessMapping{Start: 0x400000, End: 0x402000, Base: 0x400000, Path: "/opt/shop/a.out", ID: buildid.ID{}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
			o.Dialects.Mapped = func(addr uint64) (ProcessMapping, bool) {
				return c.mapping, addr >= c.mapping.Start && addr < c.mapping.End
			}
			got := ""
			o.Resolved = func(r *Resolved) {
				if len(r.Frames) > 0 {
					got += r.Verified
				}
			}
			out, _ := filterString(t, o, c.log, nil)
			if got != c.want || (out == c.log) != (c.want == "") {
				t.Errorf("proofs %q, want %q; printed\n%s", got, c.want, out)
			}
		})
	}
}

// A file without a build ID may be used only while it is the file that the process has mapped.
func TestAReplacedFileWithoutABuildIDAnswersNothing(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	write := func() os.FileInfo {
		if err := os.WriteFile(path+".new", data, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	f := New(io.Discard, resolvingDialects(t))
	defer f.Close()
	f.tracer.begin()
	m := ProcessMapping{Path: path, File: write()}
	if err := f.tracer.imageMapped(&m).Err; err != nil {
		t.Error(err)
	}
	elsewhere := m
	elsewhere.Foreign = true
	if err := f.tracer.imageMapped(&elsewhere).Err; err != nil {
		t.Errorf("the same file in another mount namespace: %v", err)
	}
	write()
	if err := f.tracer.imageMapped(&elsewhere).Err; err != errElsewhere {
		t.Errorf("in another root folder: %v", err)
	}
	if err := f.tracer.imageMapped(&m).Err; err != errReplacedSince {
		t.Errorf("after it was replaced: %v", err)
	}
}
