package filter

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/markup"
)

const top = math.MaxUint64

func TestSpaceFindsAddressesAtTheEdges(t *testing.T) {
	type load struct{ addr, size, rel, module uint64 }
	for _, test := range []struct {
		name  string
		loads []load
		addr  uint64
		want  string // module+rel, or -
	}{
		{"before", []load{{0x1000, 0x1000, 0, 1}}, 0xfff, "-"},
		{"first byte", []load{{0x1000, 0x1000, 0x40, 1}}, 0x1000, "1+0x40"},
		{"last byte", []load{{0x1000, 0x1000, 0x40, 1}}, 0x1fff, "1+0x103f"},
		{"after", []load{{0x1000, 0x1000, 0, 1}}, 0x2000, "-"},
		{"size 1", []load{{5, 1, 9, 1}}, 5, "1+0x9"},
		{"size 0", []load{{5, 0, 9, 1}}, 5, "-"},
		{"to 2^64", []load{{top - 0xfff, 0x1000, 0, 1}}, top, "1+0xfff"},
		{"beyond 2^64", []load{{top - 0xfff, 0x2000, 0, 1}}, top, "1+0xfff"},
		{"beyond 2^64, not around", []load{{top - 0xfff, 0x2000, 0, 1}}, 0, "-"},
		{"everything but one", []load{{0, top, 0, 1}}, top - 1, "1+0xfffffffffffffffe"},
		{"negative load address", []load{{0x1000, 0x1000, top - 0xfff, 1}}, 0x1800, "1+0xfffffffffffff800"},
		{"module-relative address wraps", []load{{0x1000, 0x1000, top, 1}}, 0x1001, "1+0x0"},
		{"later wins", []load{{0x1000, 0x1000, 0, 1}, {0x1800, 0x1000, 0, 2}}, 0x1800, "2+0x0"},
		{"rest of the older stays before", []load{{0x1000, 0x1000, 0, 1}, {0x1800, 0x1000, 0, 2}}, 0x17ff, "1+0x7ff"},
		{"the older map stays after the newer one", []load{{0x1000, 0x3000, 0, 1}, {0x1800, 0x10, 0, 2}}, 0x1810, "1+0x810"},
		{"older covered whole", []load{{0x1800, 0x10, 0, 1}, {0x1000, 0x3000, 0, 2}}, 0x1808, "2+0x808"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s space
			for _, l := range test.loads {
				s.load(markup.MMap{Addr: l.addr, Size: l.size, Rel: l.rel}, testModule(&s, l.module))
			}
			if got := found(&s, test.addr); got != test.want {
				t.Errorf("%#x: got %s, want %s", test.addr, got, test.want)
			}
		})
	}
}

func testModule(s *space, id uint64) *module {
	build, _ := buildid.FromBytes(fmt.Appendf(nil, "%08d", id))
	m, _, err := s.define(markup.Module{ID: id, Name: "m", BuildID: build}, new(report.Awaited))
	if err != nil {
		panic(err)
	}
	return m
}

func found(s *space, addr uint64) string {
	if v := s.find(addr); v.mod != nil {
		return fmt.Sprintf("%d+%#x", v.mod.id, v.at(addr))
	}
	return "-"
}

func TestSpaceLimits(t *testing.T) {
	var s space
	for i := range uint64(maxModules) {
		testModule(&s, i)
	}
	if _, _, err := s.define(markup.Module{ID: maxModules}, new(report.Awaited)); err != errTooManyMod {
		t.Errorf("one module more: got %v, want %v", err, errTooManyMod)
	}
	mod := s.modules[0]
	var err error
	n := 0
	for ; err == nil; n++ { // from the highest address to the lowest, the worst order
		_, _, err = s.load(markup.MMap{Addr: 1<<40 - uint64(n)*0x2000, Size: 0x1000}, mod)
	}
	if err != errTooManyMap || n < maxMaps-2 || n > maxMaps {
		t.Errorf("after %d maps: got %v, want %v", n, err, errTooManyMap)
	}
	if s.reset(); s.hasModules() || s.find(1<<40).mod != nil {
		t.Error("reset left something")
	}
}

// An oracle is a second implementation of the address space, with big integers: the last map that
// covers an address wins.
type oracle []oracleMap

type oracleMap struct {
	start, end *big.Int // end exclusive, at most 2^64
	rel        *big.Int
	module     uint64
}

var two64 = new(big.Int).Lsh(big.NewInt(1), 64)

func (o *oracle) load(m markup.MMap, module uint64) {
	if m.Size == 0 {
		return
	}
	start := new(big.Int).SetUint64(m.Addr)
	end := new(big.Int).Add(start, new(big.Int).SetUint64(m.Size))
	if end.Cmp(two64) > 0 {
		end = two64
	}
	*o = append(*o, oracleMap{start, end, new(big.Int).SetUint64(m.Rel), module})
}

func (o oracle) find(addr uint64) string {
	a := new(big.Int).SetUint64(addr)
	for i := len(o) - 1; i >= 0; i-- {
		if m := o[i]; m.start.Cmp(a) <= 0 && a.Cmp(m.end) < 0 {
			rel := new(big.Int).Sub(a, m.start)
			rel.Add(rel, m.rel).Mod(rel, two64)
			return fmt.Sprintf("%d+%#x", m.module, rel)
		}
	}
	return "-"
}

// FuzzSpace compares the space with the oracle. Each 18 bytes of data are a map: a module, a shift
// of address and size, address, and size.
func FuzzSpace(f *testing.F) {
	entry := func(module, shift byte, addr, size uint64) []byte {
		b := []byte{module, shift}
		b = binary.LittleEndian.AppendUint64(b, addr)
		return binary.LittleEndian.AppendUint64(b, size)
	}
	f.Add([]byte(nil))
	f.Add(append(entry(1, 0, 0x1000, 0x1000), entry(2, 0, 0x1800, 0x10)...))
	f.Add(append(entry(1, 0, top-1, 2), entry(2, 0, top, top)...))
	f.Add(append(entry(1, 0, 0, top), entry(2, 8, 3, 1)...))
	r := rand.New(rand.NewPCG(1, 2))
	var many []byte
	for range 600 {
		many = append(many, entry(byte(r.Uint32()%8), 0, r.Uint64N(4000), r.Uint64N(8))...)
	}
	f.Add(many)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		defer fuzztest.Watch(t, data)()
		checkSpace(t, data)
	})
}

func checkSpace(t *testing.T, data []byte) {
	var s space
	var o oracle
	var probes []uint64
	for ; len(data) >= 18; data = data[18:] {
		id := uint64(data[0] % 8)
		shift := uint(data[1] % 64)
		m := markup.MMap{
			Addr: binary.LittleEndian.Uint64(data[2:]) << shift,
			Size: binary.LittleEndian.Uint64(data[10:]) << shift,
			Rel:  uint64(data[0]) << shift,
		}
		mod := testModule(&s, id)
		same := s.hasMap(m, mod)
		s.load(m, mod)
		o.load(m, id)
		if !same && m.Size > 0 && !s.hasMap(m, mod) && m.Addr+(m.Size-1) >= m.Addr {
			t.Fatalf("%#v is not there as it was loaded", m)
		}
		end := m.Addr + m.Size
		probes = append(probes, m.Addr-1, m.Addr, m.Addr+m.Size/2, end-1, end)
	}
	probes = append(probes, 0, top)
	for _, addr := range probes {
		if got, want := found(&s, addr), o.find(addr); got != want {
			t.Fatalf("%#x: got %s, want %s", addr, got, want)
		}
	}
	n := 0
	var last *interval
	for _, run := range s.runs {
		if len(run) == 0 || len(run) > runLen {
			t.Fatalf("a run of %d", len(run))
		}
		for i := range run {
			v := &run[i]
			if v.end < v.start || last != nil && v.start <= last.end {
				t.Fatalf("[%#x-%#x] is out of order", v.start, v.end)
			}
			last = v
			n++
		}
	}
	if n != s.n {
		t.Fatalf("%d intervals, counted %d", n, s.n)
	}
}

func TestContextIsRestored(t *testing.T) {
	log := `{{{reset}}}
{{{module:0:a:elf:aa}}}
{{{mmap:0x1000:0x4000:load:0:rx:0x0}}}
{{{module:1:b:with:colons:elf:bb}}}
{{{mmap:0x2000:0x1000:load:1:rw:0x2000}}}
{{{module:0:again:elf:cc}}}
{{{mmap:0xfffffffffffff000:0x1000:load:0:r:0x7}}}
`
	var out strings.Builder
	f := New(&out, Options{})
	f.Write([]byte(log))
	context := string(f.AppendContext(nil))
	g := New(&out, Options{})
	if err := g.Restore([]byte(context)); err != nil {
		t.Fatal(err)
	}
	for addr := range uint64(0x6000) {
		if got, want := found(&g.process.space, addr), found(&f.process.space, addr); got != want {
			t.Fatalf("%#x: got %s, want %s", addr, got, want)
		}
	}
	if got, want := found(&g.process.space, top), found(&f.process.space, top); got != want {
		t.Errorf("%#x: got %s, want %s", uint64(top), got, want)
	}
	if d := cmp.Diff(string(g.AppendContext(nil)), context); d != "" {
		t.Errorf("the context of the restored filter (-got +want):\n%s", d)
	}
}

func TestHexDigits(t *testing.T) {
	for _, v := range []uint32{0, 1, 9, 10, 15, 16, 0x01234567, 0x89abcdef, 0xffffffff, 0x9a9a9a9a} {
		if got, want := string(binary.BigEndian.AppendUint64(nil, layout.HexDigits(v))), fmt.Sprintf("%08x", v); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
