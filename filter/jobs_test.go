package filter

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/symbolize"
)

// mapped is a finder that maps even small files, which are otherwise read whole: a file read whole
// has only one reader.
type mapped struct{ symbolize.Finder }

func (m mapped) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	q.Whole = 0
	return m.Finder.Find(ctx, q, note)
}

// filteredBy filters blocks with a new Filter, which has the debug files of a finder. It returns
// the output, the Symbolizer's notices and faults, and the number of answers found by the
// look-ahead.
func filteredBy(t *testing.T, files symbolize.Finder, jobs int, memory int64, blocks []string, set ...func(*Options)) (out, faults string, ahead int) {
	t.Helper()
	var notes []string
	s := symbolize.New(symbolize.Options{
		Jobs: jobs, MaxMemory: memory, Finders: []symbolize.Finder{files},
		Notify: func(message string) { notes = append(notes, message) },
	})
	defer s.Close()
	var b bytes.Buffer
	o := Options{Symbolizer: s, Patience: patient}
	for _, set := range set {
		set(&o)
	}
	f := New(&b, o)
	for _, block := range blocks {
		f.Write([]byte(block))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Reports() {
		notes = append(notes, fmt.Sprint(r.ID, r.Fault))
	}
	if f.ahead != nil {
		for _, w := range f.ahead.workers {
			ahead += w.rendered
		}
	}
	return b.String(), strings.Join(notes, "\n"), ahead
}

// The output must not depend on the number of goroutines that read debug information, even with
// little memory.
func TestOutputDoesNotDependOnJobs(t *testing.T) {
	const tree = "../testdata/debug"
	ids := idsIn(t, tree)
	logs := map[string]func(r *rand.Rand) []string{
		"elements":   func(r *rand.Rand) []string { return manyFrames(r, ids) },
		"tombstones": func(r *rand.Rand) []string { return manyTombstones(t, r, tree, ids) },
	}
	for name, log := range logs {
		t.Run(name, func(t *testing.T) {
			ahead := 0
			for seed := range uint64(fuzztest.LongOr(20, 2)) {
				blocks := log(rand.New(rand.NewPCG(seed, 1)))
				want, _, n := filteredBy(t, mapped{buildid.NewTree(tree)}, 1, 0, blocks)
				if n != 0 {
					t.Errorf("one job found %d answers ahead", n)
				}
				if n := strings.Count(want, ".c"); n < 500 {
					t.Fatalf("%d lines are known:\n%.1000s", n, want)
				}
				for _, jobs := range []int{2, 8} {
					for _, memory := range []int64{0, 64 << 10} {
						got, _, n := filteredBy(t, mapped{buildid.NewTree(tree)}, jobs, memory, blocks)
						if ahead += n; got != want {
							t.Fatalf("seed %d, %d jobs, %d bytes: -want +got\n%s", seed, jobs, memory, cmp.Diff(want, got))
						}
					}
				}
			}
			if ahead == 0 {
				t.Error("nothing was found ahead")
			}
		})
	}
}

// manyTombstones returns a log of three blocks with the backtraces of Android's tombstones, whose
// frames are held back.
func manyTombstones(t *testing.T, r *rand.Rand, tree string, ids []string) (blocks []string) {
	code := make([]elf.SectionHeader, len(ids))
	for i, id := range ids {
		f, err := elf.Open(filepath.Join(tree, ".build-id", id[:2], id[2:]+".debug"))
		if err != nil {
			t.Fatal(err)
		}
		code[i] = f.Section(".text").SectionHeader
		f.Close()
	}
	for range 3 {
		var b strings.Builder
		for b.Len() < 128<<10 {
			b.WriteString("*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\nbacktrace:\n")
			for n := range 16 {
				i := r.IntN(len(ids))
				fmt.Fprintf(&b, "      #%02d pc %016x  /system/lib64/m%d (BuildId: %s)\n", n, code[i].Addr+r.Uint64N(code[i].Size), i, ids[i])
			}
			b.WriteString("\n")
		}
		blocks = append(blocks, b.String())
	}
	return blocks
}

func idsIn(t *testing.T, tree string) (ids []string) {
	t.Helper()
	files, err := filepath.Glob(tree + "/.build-id/*/*.debug")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		ids = append(ids, filepath.Base(filepath.Dir(file))+strings.TrimSuffix(name, ".debug"))
	}
	return ids
}

// If a function of the Options panics, the same lines must lose their answers, whether the Filter
// or a worker calls the function first.
func TestPanicsDoNotDependOnJobs(t *testing.T) {
	const tree = "../testdata/debug"
	blocks := manyTombstones(t, rand.New(rand.NewPCG(5, 6)), tree, idsIn(t, tree))
	broken := func(o *Options) {
		o.Paths.Link = func(dst []byte, l symbolize.Location, _ *symbolize.Frame) ([]byte, bool) {
			if l.Addr%64 == 0 {
				panic("a fault of the embedding program")
			}
			return dst, false
		}
		o.Diagnose = func(Diagnostic) {}
	}
	want, _, _ := filteredBy(t, mapped{buildid.NewTree(tree)}, 1, 0, blocks, broken)
	for _, jobs := range []int{2, 8} {
		if got, _, _ := filteredBy(t, mapped{buildid.NewTree(tree)}, jobs, 0, blocks, broken); got != want {
			t.Errorf("%d jobs: -want +got\n%s", jobs, cmp.Diff(want, got))
		}
	}
}

// With Dialects.Elements, the output has no answers, so nothing may be resolved ahead.
func TestNothingIsResolvedAheadForElements(t *testing.T) {
	const tree = "../testdata/debug"
	blocks := manyTombstones(t, rand.New(rand.NewPCG(7, 8)), tree, idsIn(t, tree))
	out, _, ahead := filteredBy(t, mapped{buildid.NewTree(tree)}, 8, 0, blocks, func(o *Options) { o.Dialects.Elements = true })
	if !strings.Contains(out, "{{{pc:") || ahead > 0 {
		t.Errorf("%d answers were found ahead for\n%.500s", ahead, out)
	}
}

// For damaged files, neither the output nor the reported faults depend on the number of goroutines.
func TestOutputForDamagedFilesDoesNotDependOnJobs(t *testing.T) {
	ids := idsIn(t, "../testdata/debug")
	r := rand.New(rand.NewPCG(3, 4))
	faults := map[string]int{}
	for i := range fuzztest.LongOr(400, 12) {
		tree := t.TempDir()
		for _, id := range ids {
			path := filepath.Join(".build-id", id[:2], id[2:]+".debug")
			image, err := os.ReadFile(filepath.Join("../testdata/debug", path))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(tree, path)), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(tree, path), damagedInfo(t, r, image), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		seed := rand.New(rand.NewPCG(uint64(i), 2))
		for _, log := range []struct {
			files  symbolize.Finder
			blocks []string
		}{
			{mapped{buildid.NewTree(tree)}, manyFrames(seed, ids)[:1]},
			// without mapped, only one goroutine at a time reads a small file
			{buildid.NewTree(tree), manyTombstones(t, seed, "../testdata/debug", ids)[:1]},
		} {
			want, wantFaults, _ := filteredBy(t, log.files, 1, 0, log.blocks)
			faults[wantFaults]++
			for _, jobs := range []int{2, 8} {
				got, gotFaults, _ := filteredBy(t, log.files, jobs, 0, log.blocks)
				if got != want || gotFaults != wantFaults {
					t.Fatalf("damage %d, %d jobs: -want +got\n%s\n%s", i, jobs, cmp.Diff(want, got), cmp.Diff(wantFaults, gotFaults))
				}
			}
		}
	}
	if len(faults) < 3 {
		t.Errorf("the same is wrong with all files: %v", faults)
	}
}

// damagedInfo returns image with random changes in its debug information.
func damagedInfo(t *testing.T, r *rand.Rand, image []byte) []byte {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	b := slices.Clone(image)
	for range r.IntN(4) {
		for _, name := range []string{".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists"} {
			s := f.Section(name)
			if s == nil || s.Flags&elf.SHF_COMPRESSED != 0 || r.IntN(3) > 0 {
				continue
			}
			at := s.Offset + r.Uint64N(s.Size-3)
			if r.IntN(2) > 0 {
				b[at] ^= 1 << r.IntN(8)
			} else {
				binary.LittleEndian.PutUint32(b[at:], r.Uint32())
			}
		}
	}
	return b
}
