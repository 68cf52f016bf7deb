package dwarf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
)

// mutatedFiles and mutatedFilesLong are the numbers of damaged copies of the committed ELF files
// that TestMutatedFiles opens, in a short and in a long run. mutationTime bounds a short run.
const (
	mutatedFiles     = 30_000
	mutatedFilesLong = 1_000_000
	mutationTime     = 10 * time.Second
)

// A victim is a file to damage.
type victim struct {
	name      string
	image     []byte
	sections  []dataRange // ranges in the file: sections with debug information or symbols
	code      []uint64    // addresses in functions
	variables []uint64
}

func victims(t testing.TB) []victim {
	t.Helper()
	paths, err := filepath.Glob("testdata/*/*.elf")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d ELF files (%v)", len(paths), err)
	}
	var all []victim
	for _, path := range paths {
		image, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		v := victim{name: path, image: image}
		f, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.Sections {
			switch {
			case strings.HasPrefix(s.Name, ".debug_") || s.Name == ".symtab" || s.Name == ".strtab":
				v.sections = append(v.sections, dataRange{s.Offset, s.Offset + s.Size})
			case s.Flags&elf.SHF_EXECINSTR != 0:
				for addr := s.Addr; addr < s.Addr+s.Size; addr += 23 {
					v.code = append(v.code, addr)
				}
			case s.Flags&elf.SHF_ALLOC != 0:
				for addr := s.Addr; addr < s.Addr+s.Size; addr += 13 {
					v.variables = append(v.variables, addr)
				}
			}
		}
		all = append(all, v)
	}
	return all
}

// damage changes a copy of the file in a few places.
func (v *victim) damage(r *rand.Rand, b []byte) []byte {
	b = append(b[:0], v.image...)
	hostile := []uint64{0, 1, 0x7f, 0x80, 0xff, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 2}
	for range 1 + r.IntN(8) {
		at := r.IntN(len(b))
		if r.IntN(8) > 0 { // most of the file is never read
			s := v.sections[r.IntN(len(v.sections))]
			if s.hi <= s.lo || s.hi > uint64(len(b)) {
				continue
			}
			at = int(s.lo + r.Uint64N(s.hi-s.lo))
		}
		switch r.IntN(8) {
		case 0, 1:
			b[at] = byte(r.Uint32())
		case 2:
			b[at] = byte(hostile[r.IntN(5)])
		case 3:
			b[at] ^= 1 << r.IntN(8)
		case 4:
			if at+4 <= len(b) {
				binary.LittleEndian.PutUint32(b[at:], uint32(hostile[r.IntN(len(hostile))]))
			}
		case 5:
			if at+8 <= len(b) {
				binary.LittleEndian.PutUint64(b[at:], hostile[r.IntN(len(hostile))])
			}
		case 6: // a copy of another part
			from := r.IntN(len(b))
			copy(b[at:], b[from:min(len(b), from+r.IntN(64))])
		case 7: // cut off, rarely
			if r.IntN(16) == 0 {
				b = b[:max(at, 1)]
				return b
			}
			b[at]++
		}
	}
	return b
}

// interrogate looks up addresses in a file of any bytes, and checks that its answers are
// consistent.
func interrogate(t testing.TB, image []byte, code, variables []uint64) (frames, members int) {
	t.Helper()
	o, err := object.Open(bytes.NewReader(image), int64(len(image)), nil)
	if err != nil {
		return 0, 0
	}
	defer o.Close()
	warm, err := New(o, Links{})
	if err != nil {
		return 0, 0
	}
	defer warm.Close()
	for _, addr := range code {
		found, err := warm.Lookup(nil, addr)
		if frames += len(found); len(found) > maxFrames || err != nil && warm.sec.err == nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%#x: %d frames, %v", addr, len(found), err)
		}
	}
	for _, addr := range variables {
		sym, _ := o.Symbol(addr)
		extent := Extent{sym.Name, sym.Addr, sym.Size}
		v, ok, _ := warm.Variable(addr, extent)
		if v.Member != "" {
			members++
		}
		if !ok && v.Member != "" || len(v.Member) > maxMemberPath+2*maxVariableName || ok && sym.Size > 0 && v.Size != sym.Size || ok && len(v.Name)+len(v.Member) > 0 && v.Size > 0 && addr-v.Addr >= v.Size {
			t.Errorf("%#x: %v, %+v", addr, ok, v)
		}
		cold, err := New(o, Links{})
		if err != nil {
			t.Fatal(err)
		}
		if c, cok, _ := cold.Variable(addr, extent); c.Member != v.Member || cok != ok || !bytes.Equal(c.Name, v.Name) || c.Addr != v.Addr || c.Size != v.Size {
			t.Errorf("%#x: got %+v, %v from what was parsed before, %+v, %v without", addr, v, ok, c, cok)
		}
	}
	checkFootprint(t, warm)
	warm.Shrink(0)
	if n := warm.Footprint(); n != 0 {
		t.Errorf("%d bytes are held after Shrink(0)", n)
	}
	return frames, members
}

// TestMutatedFiles looks up addresses in damaged files. No file may make the reader panic, or take
// two seconds of processor time or 256 MiB. After every 1000 damaged files, lookups in an undamaged
// file must find as many frames and members as at first.
func TestMutatedFiles(t *testing.T) {
	fuzztest.WithoutRace(t)
	all := victims(t)
	n, end := mutatedFiles, time.Now().Add(mutationTime)
	if long() {
		n, end = mutatedFilesLong, time.Now().Add(time.Hour)
	}
	r := rand.New(rand.NewPCG(5, 6))
	good := all[slices.IndexFunc(all, func(v victim) bool { return strings.HasSuffix(v.name, "members/gcc5.elf") })]
	wantFrames, wantMembers := interrogate(t, good.image, good.code[:1], good.variables[:50])
	if wantFrames == 0 || wantMembers == 0 {
		t.Fatal("the undamaged file answers nothing")
	}
	var image []byte
	frames, members, i := 0, 0, 0
	for ; i < n && time.Now().Before(end); i++ {
		v := &all[r.IntN(len(all))]
		image = v.damage(r, image)
		variables := []uint64{v.variables[r.IntN(len(v.variables))], v.variables[r.IntN(len(v.variables))]}
		done := fuzztest.Watch(t, image)
		f, m := interrogate(t, image, []uint64{v.code[r.IntN(len(v.code))], v.code[r.IntN(len(v.code))]}, variables)
		done()
		frames, members = frames+f, members+m
		if i%1000 == 0 {
			if f, m := interrogate(t, good.image, good.code[:1], good.variables[:50]); f != wantFrames || m != wantMembers {
				t.Errorf("the undamaged file has %d frames and %d members, want %d and %d", f, m, wantFrames, wantMembers)
			}
		}
		if t.Failed() {
			t.Fatalf("file %d, of %s", i, v.name)
		}
	}
	t.Logf("%d files, %d frames, %d members", i, frames, members)
	if frames < i/4 || members < i/20 {
		t.Errorf("%d frames and %d members of %d files: the damage is too great to say much", frames, members, i)
	}
}

// TestTruncatedFiles looks up addresses in files that are cut off at each byte.
func TestTruncatedFiles(t *testing.T) {
	for _, v := range victims(t) {
		for n := range v.image {
			done := fuzztest.Watch(t, n)
			interrogate(t, v.image[:n:n], v.code[:1], v.variables[len(v.variables)/2:][:1])
			done()
		}
	}
}

// FuzzFile looks up addresses in a file of any bytes.
func FuzzFile(f *testing.F) {
	for _, v := range victims(f) {
		f.Add(v.image, v.code[0], v.variables[len(v.variables)/2])
	}
	f.Fuzz(func(t *testing.T, image []byte, code, variable uint64) {
		defer fuzztest.Watch(t, image)()
		interrogate(t, image, []uint64{code}, []uint64{variable})
	})
}
