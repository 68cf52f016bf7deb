package profile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// Locations that have a function must keep it. The other locations must be looked up by build ID.
func TestNamedLocationsAreKept(t *testing.T) {
	m := &pprof.Mapping{ID: 1, Start: 0x7f0000001000, Limit: 0x7f0000002000, Offset: 0x1000, File: "/missing/libledger.so", BuildID: "eecd138796b4297ca7ee7bb08854e1173fee4bff"}
	bare := &pprof.Mapping{ID: 2, Start: 0x7f0000101000, Limit: 0x7f0000102000, Offset: 0x1000, BuildID: m.BuildID}
	unknown := &pprof.Mapping{ID: 3, Start: 0x7f0000201000, Limit: 0x7f0000202000, BuildID: "aabbccdd"}
	strange := &pprof.Mapping{ID: 4, Start: 0x7f0000301000, Limit: 0x7f0000302000, File: "/bin/sh", BuildID: "pHvdEkJ/x"}
	kernel := &pprof.Mapping{ID: 5, Start: 0x7f0000401000, Limit: 0x7f0000402000, Offset: 0x1000, File: "[kernel.kallsyms]", BuildID: m.BuildID}
	vdso := &pprof.Mapping{ID: 6, Start: 0x7f0000501000, Limit: 0x7f0000502000, Offset: 0x1000, File: "[vdso]", BuildID: m.BuildID}
	known := &pprof.Function{ID: 1, Name: "known", Filename: "k.c"}
	empty := &pprof.Function{ID: 2}
	p := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, PeriodType: &pprof.ValueType{}, Mapping: []*pprof.Mapping{m, bare, unknown, strange, kernel, vdso},
		Function: []*pprof.Function{known, empty},
		Location: []*pprof.Location{
			{ID: 1, Mapping: m, Address: 0x7f0000001a25, Line: []pprof.Line{{Function: known, Line: 5}}},
			{ID: 2, Mapping: m, Address: 0x7f0000001a25},
			{ID: 3, Mapping: m, Address: 0x7f0000001917, Line: []pprof.Line{{Function: empty}}},
			{ID: 4, Address: 0x7f0000001917},
			{ID: 5, Mapping: m, Address: 0x7f0000003917},
			{ID: 6, Mapping: bare, Address: 0x7f0000101a25},
			{ID: 8, Mapping: strange, Address: 0x7f0000301a25},
			{ID: 7, Mapping: unknown, Address: 0x7f0000201a25},
			{ID: 9, Mapping: kernel, Address: 0x7f0000401a25},
			{ID: 10, Mapping: vdso, Address: 0x7f0000501a25},
		},
	}
	p.Sample = []*pprof.Sample{{Location: p.Location, Value: []int64{1}}}
	var in bytes.Buffer
	if err := p.Write(&in); err != nil {
		t.Fatal(err)
	}
	sym := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../../testdata/debug")}})
	defer sym.Close()
	var missing []symbolize.Unresolved
	o := Options{Options: report.Options{Symbolizer: sym, Wait: 1 << 40, Unresolved: func(all []symbolize.Unresolved) { missing = all }}}
	got := printed(t, in.Bytes(), Folded, View{}, o)
	const want = "[vdso]+0x1a25;ledger::Book::close();Pool<ledger::Order, 64ul>::destroy(Pool<ledger::Order, 64ul>*);0x7f0000201a25;sh+0xa25;ledger::Book::close();Pool<ledger::Order, 64ul>::destroy(Pool<ledger::Order, 64ul>*);libledger.so+0x3917;0x7f0000001917;ledger::Book::total(unsigned int) const;long ledger::(anonymous namespace)::sum<Pool<ledger::Order, 64ul>>(Pool<ledger::Order, 64ul> const&, unsigned int);Pool<ledger::Order, 64ul>::next(unsigned long) const;ledger::Book::close();Pool<ledger::Order, 64ul>::destroy(Pool<ledger::Order, 64ul>*);known 1\n" +
		"! /bin/sh: the profile gives a build ID that is not valid (\"pHvdEkJ/x\"); addresses in this file remain unresolved\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var names []string
	for _, u := range missing {
		names = append(names, fmt.Sprintf("%s %s %d", u.Name, u.ID, u.Frames))
	}
	if got, want := strings.Join(names, ", "), "  1, /bin/sh  1, /missing/libledger.so eecd138796b4297ca7ee7bb08854e1173fee4bff 1, [vdso]  1, aabbccdd aabbccdd 1"; got != want {
		t.Errorf("missing: got %s, want %s", got, want)
	}
}

// The complete part of a cut profile must be used, and the loss must be reported.
func TestCutProfiles(t *testing.T) {
	heap := "heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2] @ 0x10 0x20\n3: 4 [3: 4] @ 0x30"
	jemalloc := "heap_v2/1\n  t*: 1: 2 [0: 0]\n@ 0x10 0x20\n  t*: 1: 2 [0: 0]\n@ 0x30\n  t*: 1:"
	cpu := string(cpuProfile(binary.LittleEndian, 8, []uint64{2, 0x10, 0x20}, []uint64{1, 0x30, 0x40}))
	end := strings.Index(cpu, "00001000-")
	for _, tt := range []struct{ name, in, want string }{
		{"heap, at the end of a line", heap[:strings.LastIndex(heap, "\n")+1], "0x1f;0xf 2\n! the profile has no list of mapped files (MAPPED_LIBRARIES), so it may be cut off, and its addresses cannot be resolved\n"},
		{"heap, in a line", heap[:len(heap)-10], "0x1f;0xf 2\n! the profile is cut off within its last line; the stacks before it were read\n! the profile has no list of mapped files (MAPPED_LIBRARIES), so it may be cut off, and its addresses cannot be resolved\n"},
		{"jemalloc, in a line", jemalloc, "0x1f;0xf 2\n! the profile has no list of mapped files (MAPPED_LIBRARIES), so it may be cut off, and its addresses cannot be resolved\n"},
		{"CPU, in the last stack", cpu[:end-32], "0x1f;0x10 20000000\n! the profile is cut off: its end mark and its list of mapped files are missing; the stacks before it were read\n"},
		{"CPU, in its header", cpu[:24], "error: not a profile of pprof, gperftools, jemalloc, DHAT or Massif\n"},
	} {
		if got := printed(t, []byte(tt.in), Folded, View{}, Options{}); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}
