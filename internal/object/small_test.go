package object

import (
	"bytes"
	"debug/elf"
	"os"
	"strings"
	"testing"
)

// openSmall opens a copy of b as a small file, and then overwrites the copy: the file must not
// alias it.
func openSmall(b []byte) (*File, error) {
	b = bytes.Clone(b)
	f, err := OpenSmall(b, Options{})
	for i := range b {
		b[i] ^= 0xa5
	}
	return f, err
}

// checkSmall checks that openSmall gives the same results for the bytes b as openBytes.
func checkSmall(t *testing.T, b []byte) {
	t.Helper()
	want, wantErr := openBytes(b)
	got, err := openSmall(b)
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Fatalf("error %v, want %v", err, wantErr)
	}
	if err != nil {
		return
	}
	defer want.Close()
	defer got.Close()
	if len(got.Sections()) != len(want.Sections()) || len(got.Segments()) != len(want.Segments()) {
		t.Fatalf("%d sections, %d segments; want %d, %d", len(got.Sections()), len(got.Segments()), len(want.Sections()), len(want.Segments()))
	}
	if (got.Damage() == nil) != (want.Damage() == nil) {
		t.Errorf("Damage() = %v, want %v", got.Damage(), want.Damage())
	}
	same := func(what string, i int, got []byte, err error, want []byte, wantErr error) {
		t.Helper()
		if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("%s %d: %d bytes, %v; want %d, %v", what, i, len(got), err, len(want), wantErr)
		}
	}
	for i, s := range want.Sections() {
		if got.Sections()[i] != s {
			t.Fatalf("section %d: %+v, want %+v", i, got.Sections()[i], s)
		}
		g, err := got.DataOf(i)
		w, wantErr := want.DataOf(i)
		same("section", i, g, err, w, wantErr)
		g, err = got.Data(s.Name)
		w, wantErr = want.Data(s.Name)
		same("section by name", i, g, err, w, wantErr)
		for _, addr := range []uint64{s.Addr, s.Addr + s.Size/2, s.Addr + s.Size} {
			a, ok := got.Symbol(addr)
			b, wantOK := want.Symbol(addr)
			if ok != wantOK || string(a.Name) != string(b.Name) || a.Addr != b.Addr || a.Size != b.Size {
				t.Errorf("Symbol(%#x) = %s, %v; want %s, %v", addr, a.Name, ok, b.Name, wantOK)
			}
			if !bytes.Equal(got.Loaded(addr), want.Loaded(addr)) {
				t.Errorf("Loaded(%#x) differs", addr)
			}
		}
	}
	for i := range want.Segments() {
		if got.Segments()[i] != want.Segments()[i] {
			t.Fatalf("segment %d: %+v, want %+v", i, got.Segments()[i], want.Segments()[i])
		}
		same("segment", i, got.SegmentData(i), nil, want.SegmentData(i), nil)
	}
	id, err := got.BuildID()
	wantID, wantErr := want.BuildID()
	same("build ID", 0, id, err, wantID, wantErr)
	if id, _ := BuildIDOf(b); !bytes.Equal(id, wantID) {
		t.Errorf("BuildIDOf = %x, want %x", id, wantID)
	}
	if g, _, _ := got.DebugLink(); true {
		if w, _, _ := want.DebugLink(); g != w {
			t.Errorf("DebugLink() = %q, want %q", g, w)
		}
	}
}

func TestSmallFilesAreAsMapped(t *testing.T) {
	for name, b := range seeds(t) {
		t.Run(name, func(t *testing.T) { checkSmall(t, b) })
	}
	for i, m := range layouts {
		m.sections = []imageSection{m.compressed(1, 1000, zlibOf(t, zeros(1000))), m.zdebug(1000, zlibOf(t, zeros(1000)))}
		m.sections = append(m.sections, m.symtab(t, 2, 5, []imageSymbol{{"f", 0, 4, 2, 1, 1}})...)
		m.sections = append(m.sections, imageSection{Section{Name: "of no type", Type: elf.SHT_NULL}, strings.Repeat("bytes ", 7)})
		b := m.bytes(t)
		for end := len(b); end > 0; end -= max(1, len(b)/50) { // cut off at many places
			checkSmall(t, b[:end])
		}
		if t.Failed() {
			t.Fatalf("layout %d", i)
		}
	}
}

// In a library, small sections are padded to pages. OpenSmall must not keep the padding.
func TestSmallFilesKeepTheirSectionsOnly(t *testing.T) {
	b, err := os.ReadFile("testdata/whole.elf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := openSmall(b)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, s := range f.Sections() {
		if s.Type != elf.SHT_NOBITS {
			sum += int(s.Size)
		}
	}
	for _, p := range f.Segments() {
		if p.Type == elf.PT_PHDR || p.Offset == 0 && p.Type == elf.PT_LOAD {
			sum += 64 + 56*len(f.Segments())
			break
		}
	}
	if got := len(f.image.bytes); got > sum+sum/8 {
		t.Errorf("%d bytes are kept of %d, want those of the sections: %d", got, len(b), sum)
	}
	if f.Footprint() < int64(len(f.image.bytes)) {
		t.Error("Footprint does not count them")
	}
}
