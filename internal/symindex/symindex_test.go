package symindex

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// A model holds the contents of an index, and computes the frames that Lookup must return.
type model struct {
	units   []modelUnit
	spans   []modelSpan
	names   [][2]string
	files   []string
	symbols []Symbol
}

type modelSpan struct {
	lo, hi uint64
	unit   int
}

type modelUnit struct {
	names, files []uint32
	calls        []Call // Parent is 1 plus an index in calls
	rows         []Row  // Call is 1 plus an index in calls
}

// random returns a model of some units whose spans interleave.
func random(r *rand.Rand, units, spans int) *model {
	m := &model{names: [][2]string{{"", ""}}}
	for i := range 20 * units {
		m.names = append(m.names, [2]string{fmt.Sprintf("_Z%d", i), fmt.Sprintf("f%d()", i/2)})
		m.files = append(m.files, fmt.Sprintf("/src/dir/%d.c", i))
	}
	m.units = make([]modelUnit, units)
	for i := range m.units {
		u := &m.units[i]
		for range 1 + r.IntN(20) {
			u.names = append(u.names, r.Uint32N(uint32(len(m.names))))
			u.files = append(u.files, r.Uint32N(uint32(len(m.files))))
		}
		for j := range 30 {
			c := Call{Name: r.Uint32N(uint32(len(u.names)) + 1), Usual: r.Uint32N(uint32(len(u.files)) + 1)}
			if j > 0 && r.IntN(3) > 0 {
				c.Parent = 1 + r.Uint32N(uint32(j))
				c.File, c.Line, c.Column = r.Uint32N(uint32(len(u.files))+1), r.Uint32()>>r.IntN(32), r.Uint32()>>r.IntN(32)
			}
			u.calls = append(u.calls, c)
		}
	}
	addr := uint64(r.IntN(2)) * r.Uint64() >> 1
	for range spans {
		addr += uint64(r.IntN(3)) * r.Uint64N(1<<r.IntN(30))
		s := modelSpan{lo: addr, hi: addr + 1 + r.Uint64N(200), unit: r.IntN(units)}
		m.spans = append(m.spans, s)
		u := &m.units[s.unit]
		for addr < s.hi {
			row := Row{Addr: addr, Call: r.Uint32N(uint32(len(u.calls)) + 1)}
			if r.IntN(5) > 0 {
				row.File, row.Line, row.Column = r.Uint32N(uint32(len(u.files))+1), r.Uint32()>>r.IntN(32), r.Uint32()>>r.IntN(32)
			}
			if n := len(u.rows); n > 0 && r.IntN(3) == 0 {
				row.Call, row.Line = u.rows[n-1].Call, u.rows[n-1].Line+1
			}
			u.rows = append(u.rows, row)
			addr += 1 + r.Uint64N(1<<r.IntN(8))
		}
		addr = s.hi
	}
	addr = 0
	for range 50 {
		addr += 1 + r.Uint64N(1000)
		m.symbols = append(m.symbols, Symbol{addr, r.Uint64N(100), r.Uint32N(uint32(len(m.names)))})
	}
	return m
}

func (m *model) write(t testing.TB, source Source) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := NewWriter(f, source)
	m.writeTo(w)
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (m *model) writeTo(w *Writer) {
	for i, mu := range m.units {
		var u Unit
		var numbers []uint32
		for _, c := range mu.calls {
			if c.Parent > 0 {
				c.Parent = numbers[c.Parent-1]
			}
			numbers = append(numbers, u.AddCall(c))
		}
		for _, r := range mu.rows {
			usual := r.Call > 0 && mu.calls[r.Call-1].Usual == r.File
			if r.Call > 0 {
				r.Call = numbers[r.Call-1]
			}
			if m.begins(i, r.Addr) {
				u.BeginSpan()
			}
			u.AddRow(r, usual)
		}
		w.AddUnit(&u, mu.names, mu.files)
	}
	for _, s := range m.spans {
		w.AddSpan(s.lo, s.hi, uint32(s.unit))
	}
	for _, n := range m.names {
		w.AddName(n[0], n[1])
	}
	for i, f := range m.files {
		w.AddFile(f, i%4, i%5)
	}
	for _, s := range m.symbols {
		w.AddSymbol(s)
	}
}

// begins reports whether a span of unit begins at addr, and does not continue another one.
func (m *model) begins(unit int, addr uint64) bool {
	i := slices.IndexFunc(m.spans, func(s modelSpan) bool { return s.lo == addr })
	return i == 0 || i > 0 && (m.spans[i-1].hi < addr || m.spans[i-1].unit != unit)
}

// lookup returns the frames that Lookup must return.
func (m *model) lookup(addr uint64) (frames []Frame) {
	i := slices.IndexFunc(m.spans, func(s modelSpan) bool { return s.lo <= addr && addr < s.hi })
	if i < 0 {
		return nil
	}
	u := &m.units[m.spans[i].unit]
	var row Row
	for _, r := range u.rows {
		if r.Addr <= addr {
			row = r
		}
	}
	ref := func(list []uint32, n uint32) uint32 {
		if n == 0 {
			return 0
		}
		return list[n-1] + 1
	}
	if row.File == 0 {
		row.Line, row.Column = 0, 0
	}
	f := Frame{File: ref(u.files, row.File), Line: row.Line, Column: row.Column}
	if row.Call == 0 {
		if row.File == 0 {
			return nil
		}
		return []Frame{f}
	}
	for at := row.Call; ; {
		c := u.calls[at-1]
		f.Name, f.Inlined = ref(u.names, c.Name), c.Parent > 0
		frames = append(frames, f)
		if c.Parent == 0 {
			return frames
		}
		f = Frame{File: ref(u.files, c.File), Line: c.Line, Column: c.Column}
		at = c.Parent
	}
}

// interesting returns addresses on both sides of each start and end of a span, and around each row.
func (m *model) interesting() (addrs []uint64) {
	for _, s := range m.spans {
		addrs = append(addrs, s.lo-1, s.lo, s.hi-1, s.hi)
	}
	for _, u := range m.units {
		for _, r := range u.rows {
			addrs = append(addrs, r.Addr-1, r.Addr)
		}
	}
	return append(addrs, 0, 1<<64-1)
}

// A compiler whose calculation overflows may write a unit that extends to the end of the address
// space. Lookups in the span of such a unit must succeed.
func TestASpanMayEndAtTheLastAddress(t *testing.T) {
	const lo, hi = 1<<64 - 100, 1<<64 - 1
	m := &model{names: [][2]string{{"", ""}}, files: []string{"/src/a.c"}, units: []modelUnit{{files: []uint32{0}, rows: []Row{{Addr: lo, File: 1, Line: 7}}}}, spans: []modelSpan{{lo, hi, 0}}}
	x, err := New(m.write(t, Source{ID: []byte{1}}))
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[uint64]int{lo - 1: 0, lo: 1, hi - 1: 1, hi: 0} {
		if got, err := x.Lookup(nil, addr); err != nil || len(got) != want {
			t.Errorf("%#x: %v, %v; want %d frames", addr, got, err, want)
		}
	}
}

func TestIndexSaysWhatWasWritten(t *testing.T) {
	fuzztest.WithoutRace(t)
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := random(r, 1+r.IntN(8), r.IntN(300))
		x, err := New(m.write(t, Source{ID: []byte{1}}))
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range m.interesting() {
			got, err := x.Lookup(nil, addr)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, m.lookup(addr)); diff != "" {
				t.Fatalf("seed %d, address %#x: -got +want:\n%s", seed, addr, diff)
			}
		}
		for i, want := range m.names {
			linkage, shown, err := x.Name(uint32(i))
			if got := [2]string{string(linkage), string(shown)}; got != want || err != nil {
				t.Errorf("name %d: got %q, %v, want %q", i, got, err, want)
			}
		}
		for i, want := range m.files {
			path, comp, dir, err := x.File(uint32(i))
			if string(path) != want || comp != i%4 || dir != i%5 || err != nil {
				t.Errorf("file %d: got %q, %d, %d, %v, want %q", i, path, comp, dir, err, want)
			}
		}
		for addr := range m.symbols[len(m.symbols)-1].Addr + 10 {
			i := -1
			for j, s := range m.symbols {
				if s.Addr <= addr {
					i = j
				}
			}
			got, found, err := x.Symbol(addr)
			if err != nil || found != (i >= 0) || found && got != m.symbols[i] {
				t.Fatalf("symbol at %#x: got %+v, %v, %v, want number %d", addr, got, found, err, i)
			}
		}
		if err := x.Check(); err != nil {
			t.Error(err)
		}
	}
}

// exercise calls all lookups of an index, and returns the first error.
func exercise(x *Index, addrs []uint64) error {
	var frames []Frame
	for _, addr := range addrs {
		var err error
		if frames, err = x.Lookup(frames[:0], addr); err != nil {
			return err
		}
		for _, f := range frames {
			if f.Name > 0 {
				if _, _, err := x.Name(f.Name - 1); err != nil {
					return err
				}
			}
			if f.File > 0 {
				if _, _, _, err := x.File(f.File - 1); err != nil {
					return err
				}
			}
		}
		if _, _, err := x.Symbol(addr); err != nil {
			return err
		}
	}
	return nil
}

func TestDamageIsNeverBelieved(t *testing.T) {
	fuzztest.WithoutRace(t)
	m := random(rand.New(rand.NewPCG(1, 2)), 40, 6000)
	good := m.write(t, Source{ID: []byte{1}})
	if len(good) < 3*blockSize {
		t.Fatalf("%d bytes, want several blocks", len(good))
	}
	addrs := m.interesting()
	want := make(map[uint64][]Frame)
	for _, addr := range addrs {
		want[addr] = m.lookup(addr)
	}
	r := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		bad := slices.Clone(good)
		at := r.IntN(len(bad))
		switch r.IntN(3) {
		case 0:
			bad[at] ^= 1 << r.IntN(8)
		case 1:
			bad = bad[:at]
		case 2:
			clear(bad[at:min(len(bad), at+1+r.IntN(4096))])
			if bytes.Equal(bad, good) {
				continue
			}
		}
		x, err := New(bad)
		if err != nil {
			continue
		}
		for range 200 {
			addr := addrs[r.IntN(len(addrs))]
			got, err := x.Lookup(nil, addr)
			if err == nil && !slices.Equal(got, want[addr]) {
				t.Fatalf("damage at %d is believed: %#x: got %+v, want %+v", at, addr, got, want[addr])
			}
		}
		if x.Check() == nil {
			t.Fatalf("damage at %d is not noticed", at)
		}
	}
}

func TestDirKeepsWhatFits(t *testing.T) {
	dir := Dir{Path: filepath.Join(t.TempDir(), "new", "symfilter")}
	m := random(rand.New(rand.NewPCG(5, 5)), 2, 20)
	put := func(s Source) int64 {
		t.Helper()
		p, err := dir.Create(s)
		if err != nil {
			t.Fatal(err)
		}
		m.writeTo(p.Writer)
		n, err := p.Commit()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	s := Source{ID: []byte{0xab, 0xcd}, Size: 7, ModTime: 9}
	if _, err := dir.Open(s); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that there is none", err)
	}
	size := put(s)
	x, err := dir.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(x.Source(), s); diff != "" || x.Size() != size {
		t.Errorf("-got +want:\n%s%d bytes, want %d", diff, x.Size(), size)
	}
	for name, other := range map[string]Source{
		"size":    {ID: s.ID, Size: 8, ModTime: 9},
		"modtime": {ID: s.ID, Size: 7, ModTime: 10},
	} {
		if _, err := dir.Open(other); !errors.Is(err, ErrStale) {
			t.Errorf("another %s: got %v, want ErrStale", name, err)
		}
	}
	put(s) // while the old one is in use
	if err := exercise(x, m.interesting()); err != nil {
		t.Error(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}

	aborted, err := dir.Create(s)
	if err != nil {
		t.Fatal(err)
	}
	aborted.Abort()
	path := dir.file(s)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[8]++
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(s); !errors.Is(err, ErrStale) {
		t.Errorf("another version: got %v, want ErrStale", err)
	}
	if err := os.WriteFile(path, b[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(s); !errors.Is(err, ErrDamaged) {
		t.Errorf("cut: got %v, want ErrDamaged", err)
	}
	if err := dir.Remove(s); err != nil {
		t.Error(err)
	}

	// The least recently used index is removed first.
	old := time.Now().Add(-48 * time.Hour)
	for i := range byte(4) {
		s := Source{ID: []byte{i}}
		put(s)
		if err := os.Chtimes(dir.file(s), old, old.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if x, err := dir.Open(Source{ID: []byte{0}}); err != nil { // this marks the index as used
		t.Fatal(err)
	} else {
		x.Close()
	}
	dir.Budget = 2*size + size/2
	left := filepath.Join(dir.Path, newPrefix+"left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(left, old, old); err != nil {
		t.Fatal(err)
	}
	dir.Trim()
	entries, err := os.ReadDir(dir.Path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff(names, []string{"00.symindex", "03.symindex"}); diff != "" {
		t.Errorf("-left +want:\n%s", diff)
	}
}

// resum gives a damaged index matching checksums, so that the fuzzer gets past their check.
func resum(b []byte) []byte {
	var h header
	if len(b) < headerSize {
		return b
	}
	if h.body = uint64(len(b)); h.decode(fixed(b)) == nil {
		h.body = uint64(len(b)) / (blockSize + 4) * blockSize
		for h.body+4*blocks(h.body) < uint64(len(b)) {
			h.body++
		}
	}
	body := b[:h.body]
	var sums []byte
	for i := uint64(0); i < uint64(len(body)); i += blockSize {
		lo := i
		if i == 0 {
			lo = headerSize
		}
		sum := checksum(body[min(lo, uint64(len(body))):min(i+blockSize, uint64(len(body)))])
		sums = append(sums, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	}
	h.sumsCRC = checksum(sums)
	out := append(slices.Clone(body), sums...)
	if len(out) >= headerSize {
		copy(out, h.encode())
	}
	return out
}

// fixed returns b with a matching checksum of the header.
func fixed(b []byte) []byte {
	b = slices.Clone(b)
	copy(b, magic)
	b[8], b[9], b[10], b[11] = version, 0, 0, 0
	b[12], b[13], b[14], b[15] = byte(numSections), 0, 0, 0
	b[44] = min(b[44], 64)
	sum := checksum(b[:headerSize-4])
	b[headerSize-4], b[headerSize-3], b[headerSize-2], b[headerSize-1] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	return b
}

// FuzzIndex reads any bytes as an index: unchanged, and with matching checksums.
func FuzzIndex(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(random(rand.New(rand.NewPCG(seed, 9)), 1+int(seed), 5).write(f, Source{ID: []byte{1, 2}}), uint64(5))
	}
	f.Fuzz(func(t *testing.T, b []byte, addr uint64) {
		defer fuzztest.Watch(t, b)()
		for _, b := range [][]byte{b, resum(b)} {
			x, err := New(b)
			if err != nil {
				continue
			}
			addrs := []uint64{addr, 0, 1<<64 - 1}
			if s := x.recordAt(secSpanDir, 0, groupSize); s != nil {
				for i := range uint64(64) {
					addrs = append(addrs, leUint64(s)+i*3)
				}
			}
			for _, a := range addrs {
				if err := exercise(x, []uint64{a}); err != nil && !errors.Is(err, ErrDamaged) {
					t.Error(err)
				}
			}
			for i := range min(x.Names(), 100) {
				x.Name(uint32(i))
			}
			for i := range min(x.Files(), 100) {
				x.File(uint32(i))
			}
		}
	})
}

func leUint64(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// If an index has twice as many units, a lookup must not read more blocks, except for one more step
// of each binary search.
func TestCostDoesNotGrowWithTheIndex(t *testing.T) {
	var blocks [2]int
	for i, units := range []int{40, 80} {
		m := random(rand.New(rand.NewPCG(6, 6)), units, 300*units)
		b := m.write(t, Source{})
		for _, s := range m.spans[:50] {
			x, err := New(b)
			if err != nil {
				t.Fatal(err)
			}
			if err := exercise(x, []uint64{s.lo}); err != nil {
				t.Fatal(err)
			}
			n := 0
			for i := range x.sound {
				n += bits.OnesCount64(x.sound[i].Load())
			}
			blocks[i] = max(blocks[i], n)
		}
	}
	if blocks[0] == 0 || blocks[1] > blocks[0]+3 || blocks[1] > 40 {
		t.Errorf("%d blocks are read at most, and %d of an index twice the size", blocks[0], blocks[1])
	}
}
