package collector

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/symfilter/symfilter/collector/internal/conformance"
	"github.com/symfilter/symfilter/collector/internal/metadata"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// startProfiles starts a processor of profiles, which is shut down at the end of the test.
func startProfiles(t testing.TB, c *Config) *profilesProcessor {
	t.Helper()
	p := &profilesProcessor{life{set: nopSettings(), cfg: c, factory: &factory{all: make(map[*Config]*shared)}}}
	startUntilEnd(t, p.start, p.shutdown)
	return p
}

// process passes a batch through p. The batch must not gain a violation of a rule of OTLP.
func (p *profilesProcessor) process(t testing.TB, pd pprofile.Profiles) {
	t.Helper()
	before := conformance.Check(pd)
	if _, err := p.processProfiles(context.Background(), pd); err != nil {
		t.Fatal(err)
	}
	for _, v := range conformance.Check(pd) {
		if !slices.Contains(before, v) {
			t.Errorf("new violation: %s", v)
		}
	}
}

// A sample is a profile to which a test adds mappings and locations.
type sample struct {
	pprofile.Profiles
	dict pprofile.ProfilesDictionary
}

func newSample() *sample {
	p := pprofile.NewProfiles()
	d := p.Dictionary()
	d.StringTable().Append("")
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.FunctionTable().AppendEmpty()
	d.AttributeTable().AppendEmpty()
	return &sample{p, d}
}

func (s *sample) str(text string) int32 {
	i, err := pprofile.SetString(s.dict.StringTable(), text)
	if err != nil {
		panic(err)
	}
	return i
}

func (s *sample) attribute(name, value string) int32 {
	a := s.dict.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(s.str(name))
	a.Value().SetStr(value)
	return int32(s.dict.AttributeTable().Len() - 1)
}

func (s *sample) mapping(file, id string, start, limit, offset uint64) int32 {
	m := s.dict.MappingTable().AppendEmpty()
	m.SetFilenameStrindex(s.str(file))
	m.SetMemoryStart(start)
	m.SetMemoryLimit(limit)
	m.SetFileOffset(offset)
	if id != "" {
		m.AttributeIndices().Append(s.attribute(buildIDAttribute, id))
	}
	return int32(s.dict.MappingTable().Len() - 1)
}

func (s *sample) location(mapping int32, addr uint64) pprofile.Location {
	l := s.dict.LocationTable().AppendEmpty()
	l.SetMappingIndex(mapping)
	l.SetAddress(addr)
	return l
}

// shown returns a line for each location, with its calls.
func shown(d pprofile.ProfilesDictionary) string {
	str := func(i int32) string { return d.StringTable().At(int(i)) }
	var b strings.Builder
	for i := 1; i < d.LocationTable().Len(); i++ {
		l := d.LocationTable().At(i)
		fmt.Fprintf(&b, "%#x", l.Address())
		for _, line := range l.Lines().All() {
			f := d.FunctionTable().At(int(line.FunctionIndex()))
			fmt.Fprintf(&b, " | %s", str(f.NameStrindex()))
			if s := str(f.SystemNameStrindex()); s != "" && s != str(f.NameStrindex()) {
				fmt.Fprintf(&b, " (%s)", s)
			}
			if line.Line() != 0 {
				fmt.Fprintf(&b, " %s:%d:%d", str(f.FilenameStrindex()), line.Line(), line.Column())
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const ledgerID = "eecd138796b4297ca7ee7bb08854e1173fee4bff"

// ledger returns a profile with locations of a library that has a debug file, and with locations
// that get no names.
func ledger() *sample {
	s := newSample()
	known := s.mapping("/missing/libledger.so", ledgerID, 0x7f0000001000, 0x7f0000002000, 0x1000)
	bare := s.mapping("", ledgerID, 0, 0, 0)
	named := s.location(known, 0x7f0000001a25)
	f := s.dict.FunctionTable().AppendEmpty()
	f.SetNameStrindex(s.str("before"))
	line := named.Lines().AppendEmpty()
	line.SetFunctionIndex(1)
	line.SetLine(5)
	s.location(known, 0x7f0000001a25)
	s.location(known, 0x1a25) // the eBPF profiler sends addresses of the file
	s.location(bare, 0x1917).Lines().AppendEmpty()
	s.location(0, 0x1a25)
	s.location(s.mapping("nothing.so", "", 0, 0, 0), 0x1a25)
	s.location(s.mapping("unknown.so", "aabbccdd", 0, 0, 0), 0x1a25)
	s.location(s.mapping("strange.so", "not hex", 0, 0, 0), 0x1a25)
	s.location(known, 0x7f0000001fff)
	s.location(99, 0x1a25)
	s.location(math.MinInt32, 0x1a25)
	s.location(known, 0x1a25).AttributeIndices().Append(99, -1, s.attribute(frameTypeAttribute, "cpython"))
	return s
}

const ledgerLines = `0x7f0000001a25 | before :5:0
0x7f0000001a25 | Pool<ledger::Order, 64ul>::destroy(Pool<ledger::Order, 64ul>*) (_ZN4PoolIN6ledger5OrderELm64EE7destroyEPS2_) /src/inventory/pool.h:18:5 | ledger::Book::close() (_ZN6ledger4Book5closeEv) /src/inventory/ledger.cc:31:3
0x1a25 | Pool<ledger::Order, 64ul>::destroy(Pool<ledger::Order, 64ul>*) (_ZN4PoolIN6ledger5OrderELm64EE7destroyEPS2_) /src/inventory/pool.h:18:5 | ledger::Book::close() (_ZN6ledger4Book5closeEv) /src/inventory/ledger.cc:31:3
0x1917 | Pool<ledger::Order, 64ul>::next(unsigned long) const (_ZNK4PoolIN6ledger5OrderELm64EE4nextEm) /src/inventory/pool.h:33:5 | long ledger::(anonymous namespace)::sum<Pool<ledger::Order, 64ul>>(Pool<ledger::Order, 64ul> const&, unsigned int) (_ZN6ledger12_GLOBAL__N_13sumI4PoolINS_5OrderELm64EEEElRKT_j) /src/inventory/ledger.cc:13:32 | ledger::Book::total(unsigned int) const (_ZNK6ledger4Book5totalEj) /src/inventory/ledger.cc:27:16
0x1a25
0x1a25
0x1a25
0x1a25
0x7f0000001fff
0x1a25
0x1a25
0x1a25
`

func TestLocationsGetTheirLines(t *testing.T) {
	p := startProfiles(t, testConfig())
	for batch := range 2 {
		s := ledger()
		p.process(t, s.Profiles)
		if diff := cmp.Diff(ledgerLines, shown(s.dict)); diff != "" {
			t.Errorf("batch %d (-want +got):\n%s", batch, diff)
		}
	}
	want := map[string]int64{
		"named": 6, "no_module": 2, "no_build_id": 4, "no_file": 2, "no_mapping": 2, "damaged": 4, "other": 2,
	}
	if diff := cmp.Diff(want, resultsOf(p)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// referring returns a profile whose attributes refer to strings. attribute is the index of a
// mapping's attribute.
func referring(t testing.TB, attribute int) pprofile.Profiles {
	t.Helper()
	pd, err := new(pprofile.JSONUnmarshaler).UnmarshalProfiles([]byte(`{"dictionary":{"stringTable":["","` + buildIDAttribute + `","` + ledgerID + `","` + frameTypeAttribute + `","cpython"],
			"attributeTable":[{},{"keyStrindex":1,"value":{"stringValueStrindex":2}},{"keyStrindex":3,"value":{"stringValueStrindex":4}},
				{"keyStrindex":1,"value":{"stringValueStrindex":99}}],
			"mappingTable":[{},{"attributeIndices":[` + fmt.Sprint(attribute) + `]}],
			"locationTable":[{},{"mappingIndex":1,"address":"6693"},{"mappingIndex":1,"address":"6693","attributeIndices":[2]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return pd
}

// If the value of an attribute is an index in the table of strings, as OTLP allows, the text in
// that table must be used.
func TestAttributesMayReferToStrings(t *testing.T) {
	for attribute, want := range map[int]map[string]int64{
		1: {"named": 1, "other": 1},
		3: {"no_build_id": 1, "other": 1},
	} {
		p := startProfiles(t, testConfig())
		p.process(t, referring(t, attribute))
		if diff := cmp.Diff(want, resultsOf(p)); diff != "" {
			t.Errorf("attribute %d (-want +got):\n%s", attribute, diff)
		}
	}
}

// If the configuration allows it, a mapping without a build ID must be resolved by the file at its
// path. The file's code must fit the mapping. The test program itself is mapped: as built, without
// its build ID, and replaced by another program.
func TestFilesAtPaths(t *testing.T) {
	testenv.OnlyOn(t, "linux")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	pc := uint64(reflect.ValueOf(TestFilesAtPaths).Pointer()) + 4
	var start, limit, offset uint64
	for line := range strings.Lines(string(maps)) {
		var mode string
		if fmt.Sscanf(line, "%x-%x %s %x", &start, &limit, &mode, &offset); start <= pc && pc < limit {
			break
		}
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	const note = "\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00"
	anonymous := bytes.Replace(program, []byte(note), []byte(strings.Replace(note, "\x03", "\x77", 1)), 1)
	if bytes.Equal(anonymous, program) {
		t.Fatal("the test has no build ID")
	}
	copied := filepath.Join(t.TempDir(), "copy")
	for _, tt := range []struct {
		name, path, id string
		file           []byte
		move           uint64 // added to the mapping's offset
		forbidden      bool
		want           string
	}{
		{name: "with a build ID", path: self, want: "named"},
		{name: "without", path: copied, file: anonymous, want: "named"},
		{name: "replaced", path: copied, file: []byte("#!/bin/sh\n"), want: "no_build_id"},
		{name: "of other code", path: self, move: 4096, want: "no_build_id"},
		{name: "not allowed", path: self, forbidden: true, want: "no_build_id"},
		{name: "with a mistake for a build ID", path: self, id: "-", want: "no_build_id"},
		{name: "missing", path: "/nowhere/prog", want: "no_build_id"},
		{name: "relative", path: "prog", want: "no_build_id"},
		{name: "not a file", path: "[vdso]", want: "no_build_id"},
		{name: "a device", path: "/dev/zero", want: "no_build_id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.file != nil {
				os.Remove(tt.path)
				if err := os.WriteFile(tt.path, tt.file, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := testConfig()
			c.Symbols.ModulePaths, c.Patience.Local = !tt.forbidden, time.Minute
			p := startProfiles(t, c)
			s := newSample()
			s.location(s.mapping(tt.path, tt.id, start, limit, offset+tt.move), pc)
			before := pprofile.NewProfiles()
			s.CopyTo(before)
			p.process(t, s.Profiles)
			got := ""
			for r, name := range locationResultNames {
				if p.shared.locations[r].Load() == 1 {
					got += name
				}
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			text := shown(s.dict)
			if named := strings.Contains(text, "github.com/symfilter/symfilter/collector.TestFilesAtPaths") && strings.Contains(text, "profiles_test.go:"); named != (tt.want == "named") {
				t.Errorf("got %s", text)
			}
			if tt.want != "named" && text != shown(before.Dictionary()) {
				t.Errorf("the profile has changed:\n%s", text)
			}
		})
	}
	t.Run("without patience", func(t *testing.T) {
		c := testConfig()
		c.Symbols.ModulePaths, c.Patience.Local = true, 0
		p := startProfiles(t, c)
		s := newSample()
		s.location(s.mapping(self, "", start, limit, offset), pc)
		p.process(t, s.Profiles)
		if p.shared.locations[locationPending].Load() != 1 {
			t.Errorf("got %s", shown(s.dict))
		}
	})
}

// The code of a kernel must be found by its build ID, whether KASLR has moved it or not. Names that
// the profiler has read from kallsyms must stay.
func TestKernelsHaveNames(t *testing.T) {
	testenv.Need(t, "gcc")
	const source = "void handle_irq(void) { __asm__ volatile(\"\"); }\nvoid _start(void) { handle_irq(); }\n"
	dir, id := t.TempDir(), "00112233445566778899aabbccddeeff00112233"
	if err := os.WriteFile(filepath.Join(dir, "kernel.c"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("gcc", "-g", "-O1", "-fno-inline", "-ffreestanding", "-static", "-nostdlib", "-mcmodel=kernel", "-fno-pie", "-no-pie",
		"-Wl,--build-id=0x"+id, "-Wl,-Ttext=0xffffffff81000000", "-Wl,-z,max-page-size=0x200000", "-o", "vmlinux", "kernel.c")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("gcc: %v\n%s", err, out)
	}
	c := testConfig()
	c.Symbols.SymbolPaths, c.Patience.Local = []string{dir}, time.Minute
	p := startProfiles(t, c)
	s := newSample()
	const fixed, moved = 0xffffffff81000000, 0xffffffff9c000000
	s.location(s.mapping("[kernel.kallsyms]", id, fixed, fixed+0x3000000, fixed), fixed)
	s.location(s.mapping("[kernel.kallsyms]_text", id, moved, moved+0x3000000, moved), moved)
	s.location(s.mapping("vmlinux", id, moved, moved+0x3000000, 0), moved)
	bare := s.mapping("vmlinux", id, 0, 0, 0)
	s.location(bare, fixed).AttributeIndices().Append(s.attribute(frameTypeAttribute, "kernel"))
	f := s.dict.FunctionTable().AppendEmpty()
	f.SetNameStrindex(s.str("do_syscall_64"))
	s.location(bare, fixed).Lines().AppendEmpty().SetFunctionIndex(1)
	s.location(s.mapping("[kernel.kallsyms]", "", fixed, fixed+0x3000000, fixed), fixed)
	p.process(t, s.Profiles)
	line := " | handle_irq " + dir + "/kernel.c:1\n"
	want := "0xffffffff81000000" + line + "0xffffffff9c000000" + line + "0xffffffff9c000000" + line + "0xffffffff81000000" + line +
		"0xffffffff81000000 | do_syscall_64\n0xffffffff81000000\n"
	if diff := cmp.Diff(want, regexp.MustCompile(`(:\d+):\d+\n`).ReplaceAllString(shown(s.dict), "$1\n")); diff != "" {
		t.Errorf("without columns (-want +got):\n%s", diff)
	}
}

// A location that was looked up in one batch must not be looked up again in the next batch.
func TestLocationsAreAskedAboutOnce(t *testing.T) {
	p := startProfiles(t, testConfig())
	for batch := range 3 {
		s := newSample()
		m := s.mapping("", ledgerID, 0, 0, 0)
		for addr := range uint64(200) {
			s.location(m, 0x1900+addr)
		}
		before := p.shared.symbols.Symbolizer.Stats().Questions
		p.process(t, s.Profiles)
		if asked := p.shared.symbols.Symbolizer.Stats().Questions - before; batch > 0 && asked > 0 {
			t.Errorf("batch %d asked %d questions", batch, asked)
		}
	}
}

// Processors of profiles must pass batches to the next consumer: with names before the shutdown,
// and without names after it. They share debug files with processors of logs.
func TestProfilesGoToTheNextConsumer(t *testing.T) {
	next, cfg, f := new(consumertest.ProfilesSink), testConfig(), NewFactory()
	set := processortest.NewNopSettings(metadata.Type)
	profiles, err := f.CreateProfiles(context.Background(), set, cfg, next)
	if err != nil {
		t.Fatal(err)
	}
	logs, err := f.CreateLogs(context.Background(), set, cfg, consumertest.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []component.Component{profiles, logs} {
		if err := c.Start(context.Background(), componenttest.NewNopHost()); err != nil {
			t.Fatal(err)
		}
	}
	if err := profiles.ConsumeProfiles(context.Background(), ledger().Profiles); err != nil {
		t.Error(err)
	}
	for _, c := range []component.Component{logs, profiles} {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
	late := ledger()
	if err := profiles.ConsumeProfiles(context.Background(), late.Profiles); err != nil {
		t.Error(err)
	}
	all := next.AllProfiles()
	if len(all) != 2 || shown(all[0].Dictionary()) != ledgerLines || shown(all[1].Dictionary()) == ledgerLines {
		t.Errorf("%d profiles arrived: the first has to be named, the second, sent after the shutdown, passes", len(all))
	}
}

func TestLinesOfABatchAreBounded(t *testing.T) {
	n := newNaming(startProfiles(t, testConfig()).shared, newSample().dict, nil)
	n.added = maxAdded + 1
	if got := n.setLines(pprofile.NewLocation(), answer{lines: []line{{function: &function{}}}}); got != locationLimit {
		t.Errorf("got %s, want limit", locationResultNames[got])
	}
}

// If there are too many answers, only recently used answers may be kept.
func TestNamedIsBounded(t *testing.T) {
	var n named
	name := strings.Repeat("x", 1000)
	at := func(i int) spot { return spot{addr: uint64(i)} }
	for i := range 200_000 {
		n.put(at(i), answer{lines: []line{{function: &function{name: fmt.Sprint(i, name)}}}})
		if _, ok := n.get(at(7)); i > 7 && !ok {
			t.Fatalf("after %d answers one in use was dropped", i)
		}
	}
	if _, ok := n.get(at(100)); ok || n.young.size > maxNamed || n.old.size > maxNamed {
		t.Errorf("%d and %d bytes are kept", n.young.size, n.old.size)
	}
	n = named{}
	f := &function{name: name}
	n.put(at(0), answer{lines: []line{{function: f}}})
	n.old, n.young = n.young, newGeneration()
	n.get(at(0))
	if n.young.functions[*f] != f || n.young.size < len(name) {
		t.Error("the function of an answer in use does not count")
	}
	n.put(at(1), answer{until: time.Now().Add(-time.Second)})
	if _, ok := n.get(at(1)); ok {
		t.Error("an answer did not expire")
	}
}

// BenchmarkLocations names 100,000 locations that were looked up before.
func BenchmarkLocations(b *testing.B) {
	p := startProfiles(b, testConfig())
	const locations = 100_000
	s := newSample()
	m := s.mapping("", ledgerID, 0, 0, 0)
	for i := range uint64(locations) {
		s.location(m, 0x19c0+i%0x300)
	}
	all := make([]pprofile.Profiles, b.N+1)
	for i := range all {
		all[i] = pprofile.NewProfiles()
		s.CopyTo(all[i])
	}
	p.processProfiles(context.Background(), all[b.N])
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		p.processProfiles(context.Background(), all[i])
	}
	b.ReportMetric(float64(b.N)*locations/b.Elapsed().Seconds(), "locations/s")
}

// FuzzProfiles checks that naming any profile takes bounded time and memory, and keeps the
// profile's strings and locations.
func FuzzProfiles(f *testing.F) {
	var marshal pprofile.ProtoMarshaler
	for _, s := range []pprofile.Profiles{ledger().Profiles, newSample().Profiles, referring(f, 1)} {
		b, err := marshal.MarshalProfiles(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	p := startProfiles(f, testConfig())
	f.Fuzz(func(t *testing.T, in []byte) {
		defer fuzztest.Watch(t, in)()
		var unmarshal pprofile.ProtoUnmarshaler
		pd, err := unmarshal.UnmarshalProfiles(in)
		if err != nil {
			return
		}
		before := pprofile.NewProfiles()
		pd.CopyTo(before)
		p.processProfiles(context.Background(), pd)
		checkFuzzed(t, before, pd)
		was, is := before.Dictionary(), pd.Dictionary()
		if is.LocationTable().Len() != was.LocationTable().Len() || is.FunctionTable().Len() < was.FunctionTable().Len() || is.StringTable().Len() < was.StringTable().Len() {
			t.Fatal("a table is shorter")
		}
		for i, s := range was.StringTable().All() {
			if is.StringTable().At(i) != s {
				t.Fatalf("string %d was %q, and is %q", i, s, is.StringTable().At(i))
			}
		}
		for i, l := range was.LocationTable().All() {
			to := is.LocationTable().At(i)
			if to.Address() != l.Address() || to.MappingIndex() != l.MappingIndex() {
				t.Fatalf("location %d is another", i)
			}
			for _, line := range to.Lines().All() {
				if to.Lines().Len() != l.Lines().Len() && (line.FunctionIndex() <= 0 || int(line.FunctionIndex()) >= is.FunctionTable().Len()) {
					t.Fatalf("location %d has function %d of %d", i, line.FunctionIndex(), is.FunctionTable().Len())
				}
			}
		}
	})
}
