package dwarf

import (
	"bytes"
	stdcmp "cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/symfilter/symfilter/internal/object"
)

// In strict DWARF 2, GCC describes the cold part of a function as another function. Lookup and Walk
// must find the calls inlined into the cold part, regardless of earlier lookups.
func TestCallsInColdParts(t *testing.T) {
	for _, flags := range []string{"-O2", "-O3 -ffunction-sections"} {
		t.Run(flags, func(t *testing.T) {
			dir := t.TempDir()
			need(t, "g++")
			inDir(t, dir, "g++ -gdwarf-2 -gstrict-dwarf "+flags+" TESTDATA/tiny/cold.cc -o prog")
			path := filepath.Join(dir, "prog")
			o := openObject(t, path)
			addrs := make([]uint64, 0, 1000)
			for s := range o.Symbols() {
				if name := string(s.Name); strings.Contains(name, "work") || strings.Contains(name, "outer") || name == "_Z4stopi" {
					for i := range s.Size {
						addrs = append(addrs, s.Addr+i)
					}
				}
			}
			slices.Sort(addrs)
			isCold := func(addr uint64) bool {
				s, _ := o.Symbol(addr)
				return bytes.HasSuffix(s.Name, []byte(".cold"))
			}
			want := oracle(t, path, addrs)
			got := make([][]plainFrame, len(addrs))
			inlined, gathered := 0, false
			d := testLinks{}.open(t, o)
			for i, addr := range slices.Backward(addrs) {
				frames, err := d.Lookup(nil, addr)
				if err != nil {
					t.Fatalf("address %#x: %v", addr, err)
				}
				got[i] = withSymbol(o, frames, addr)
				// Strict DWARF 2 gives no file for a call: LLVM's outermost frame then has the file
				// of the symbol.
				if last := len(want[i]) - 1; len(got[i]) > last && last > 0 && want[i][last].Line == 0 {
					want[i][last].FileName = ""
				}
				if len(frames) > 1 && isCold(addr) {
					inlined++
				}
				for u := range d.units.all() {
					if gathered = gathered || isCold(addr); (u.funcs.rare != nil && u.funcs.rare.gathered) != gathered {
						t.Errorf("address %#x: all calls of the unit are read: %v", addr, !gathered)
					}
				}
				checkTiers(t, o, testLinks{}, d, addr, frames)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-%s +Lookup:\n%s", llvmSymbolizer, diff)
			}
			if inlined == 0 {
				t.Error("no address of a cold part is in an inlined call")
			}
			checkFootprint(t, d)
			forward := testLinks{}.open(t, o)
			for i, addr := range addrs {
				frames, _ := forward.Lookup(nil, addr)
				if diff := cmp.Diff(got[i], withSymbol(o, frames, addr)); diff != "" {
					t.Errorf("address %#x (-asked backwards +forwards):\n%s", addr, diff)
				}
			}
			checkWalk(t, o, addrs)
		})
	}
}

// checkWalk checks that the pieces of Walk agree with Lookup at each address.
func checkWalk(t *testing.T, o *object.File, addrs []uint64) {
	t.Helper()
	d, walked := testLinks{}.open(t, o), testLinks{}.open(t, o)
	stretches, err := walked.Stretches()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[uint64][]Frame)
	for len(stretches) > 0 {
		unit := stretches[0].Unit
		n := slices.IndexFunc(stretches, func(s Stretch) bool { return s.Unit != unit })
		if n < 0 {
			n = len(stretches)
		}
		var pieces []Piece
		w, err := walked.Walk(unit, stretches[:n], func(_ *Unit, p Piece) { pieces = append(pieces, p) })
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range addrs {
			for _, s := range stretches[:n] {
				if s.Lo <= addr && addr < s.Hi {
					i, found := slices.BinarySearchFunc(pieces, addr, func(p Piece, addr uint64) int { return stdcmp.Compare(p.Addr, addr) })
					if !found {
						i--
					}
					got[addr] = pieceFrames(walked, w, pieces[i])
				}
			}
		}
		stretches = stretches[n:]
	}
	want := make(map[uint64][]Frame)
	for _, addr := range addrs {
		if want[addr], err = d.Lookup(nil, addr); err != nil {
			t.Fatal(err)
		}
		for i := range want[addr] {
			f := &want[addr][i]
			f.Name = bytes.Clone(f.Name)
			f.CompDir, f.Dir, f.PlainFile, f.HasLinkage = 0, 0, false, false
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-Lookup +Walk:\n%s", diff)
	}
}

// pieceFrames returns the frames of a piece, with their names and lines.
func pieceFrames(d *Data, w *Unit, p Piece) []Frame {
	at := Frame{}
	if p.HasLine {
		at.File, _, _ = w.File(p.File)
		at.Line, at.Column = p.Line, p.Column
	}
	if p.Call < 0 {
		if at.File == "" {
			return nil
		}
		return []Frame{at}
	}
	var frames []Frame
	for i := p.Call; ; {
		c := w.Call(i)
		at.Name, at.Inlined = bytes.Clone(d.Name(c.Name)), c.Parent >= 0
		frames = append(frames, at)
		if c.Parent < 0 {
			return frames
		}
		at = Frame{Line: c.Line, Column: c.Column}
		at.File, _, _ = w.File(c.File)
		i = c.Parent
	}
}
