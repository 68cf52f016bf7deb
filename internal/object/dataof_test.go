package object

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

func TestSectionsOfOneName(t *testing.T) {
	testenv.Need(t, "gcc")
	dir := t.TempDir()
	src, path := filepath.Join(dir, "a.s"), filepath.Join(dir, "a.o")
	text := ".section .debug_x,\"\",@progbits\n.ascii \"one\"\n.section .debug_x,\"G\",@progbits,g,comdat\n.ascii \"two\"\n.section .debug_y,\"\",@progbits\n.ascii \"why\"\n"
	if err := os.WriteFile(src, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-c", "-o", path, src).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(r, info.Size(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []string
	for i, s := range f.Sections() {
		if s.Name == ".debug_x" || s.Name == ".debug_y" {
			data, err := f.DataOf(i)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(data))
		}
	}
	slices.Sort(got)
	if want := []string{"one", "two", "why"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The time to read a section must not grow with the number of sections.
func TestDataOfManySections(t *testing.T) {
	fuzztest.WithoutRace(t)
	watch(t)
	const n = 65000 // the maximum in the ELF header
	var m image
	one := imageSection{Section: Section{Name: ".debug_types", Type: elf.SHT_PROGBITS}, data: "x"}
	m.sections = slices.Repeat([]imageSection{one}, n)
	data := m.bytes(t)
	binary.LittleEndian.PutUint16(data[16:], uint16(elf.ET_REL))
	f, err := openBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := 1; i <= n; i++ {
		if data, err := f.DataOf(i); string(data) != "x" || err != nil {
			t.Fatalf("section %d: %q, %v", i, data, err)
		}
	}
}
