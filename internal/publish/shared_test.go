package publish

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// manyErrors returns n errors with different innermost functions. Each has depth callers, chosen
// from 64. If shared is set, errors share the callers' frames.
func manyErrors(n, depth int, shared bool) *Result {
	callers := make([]*findings.TraceFrame, 64)
	for i := range callers {
		callers[i] = at(fmt.Sprintf("ns::List<%d>::operator[](int) {lambda}", i), fmt.Sprintf("_ZN2ns1f%dEv", i), fmt.Sprintf("/src/app/list%d.h", i%5), uint32(i+1), "/opt/app")
	}
	var all []*findings.Finding
	for i := range n {
		x := aRead()
		frames := []*findings.TraceFrame{at(fmt.Sprint("read", i), fmt.Sprint("read", i), "/src/app/read.cc", uint32(i+1), "/opt/app")}
		for k := range depth {
			f := callers[(i*31+k*17)%len(callers)]
			if !shared {
				f = &findings.TraceFrame{Frame: f.Frame, Object: f.Object, Address: f.Address, Offset: f.Offset}
			}
			frames = append(frames, f)
		}
		x.Traces[0].Frames = frames
		all = append(all, x)
	}
	return results(all...)
}

func TestSharedFramesArePrintedAsOthers(t *testing.T) {
	for name, print := range map[string]func(io.Writer, *Result) error{"sarif": SARIF, "suppressions": Suppressions} {
		want := printed(t, print, manyErrors(100, 20, false))
		if got := printed(t, print, manyErrors(100, 20, true)); got != want {
			t.Errorf("%s: %s", name, cmp.Diff(want, got))
		}
	}
}

// Frames are most of the output, so their memory must not grow with the number of errors.
func TestSharedFramesArePrintedWithoutAllocations(t *testing.T) {
	fuzztest.WithoutRace(t)
	const errors = 1000
	for name, print := range map[string]func(io.Writer, *Result) error{"sarif": SARIF, "suppressions": Suppressions} {
		allocated := func(depth int) float64 {
			r := manyErrors(errors, depth, true)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := print(io.Discard, r); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			return float64(after.Mallocs - before.Mallocs)
		}
		if each := (allocated(22) - allocated(6)) / (16 * errors); each > 0.2 {
			t.Errorf("%s: %.2f allocations for each frame", name, each)
		}
	}
}

func TestOnlyLargeFilesAreMeasured(t *testing.T) {
	line := []byte(`{"location":{"physicalLocation":{"artifactLocation":{"uri":"src/list.h"},"region":{"startLine":7}},"message":{"text":"main"}}},` + "\n")
	similar := &meter{w: io.Discard}
	for range 1000 { // 32 MiB
		similar.Write(bytes.Repeat(line, 256))
	}
	if similar.gzip != nil || similar.full() || similar.kept > maxCompressed/4 {
		t.Errorf("%d bytes of similar lines are kept, measured: %v", similar.kept, similar.gzip != nil)
	}

	random := rand.NewChaCha8([32]byte{1})
	mixed := &meter{w: io.Discard}
	var size countBytes
	all, _ := gzip.NewWriterLevel(&size, gzip.BestSpeed)
	noise := make([]byte, 16<<10)
	for range 800 {
		random.Read(noise)
		text := append(bytes.Repeat(line, 256), noise...)
		mixed.Write(text)
		all.Write(text)
	}
	if !mixed.full() || mixed.size != size {
		t.Errorf("a large file has %d bytes compressed, want %d", mixed.size, size)
	}
}
