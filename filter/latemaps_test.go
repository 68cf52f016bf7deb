package filter

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// In a log with a map in every second line, the earlier frames are judged again at most
// maxLateTries times.
func TestFramesAreJudgedForABoundedNumberOfMaps(t *testing.T) {
	type outcome struct {
		tries    int
		resolves bool // frames still wait for maps
	}
	var got []outcome
	for _, lists := range []int{1, maxLateTries, maxLateTries + 1, 10 * maxLateTries} {
		o := resolvingDialects(t)
		o.Dialects.Images = nil
		f := New(io.Discard, o)
		log := "#1  0x00007f31c2a01154 in ?? () from /none/libledger.so\n" + strings.Repeat("text\n", 20) +
			strings.Repeat("7fe000000000-7fe000001000 r-xp 00000000 fe:01 1835021    /none/libshop.so\ntext\n", lists)
		if _, err := io.WriteString(f, log); err != nil {
			t.Fatal(err)
		}
		got = append(got, outcome{f.tracer.maps.tries, f.tracer.maps.unresolved > 0})
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := []outcome{{1, true}, {maxLateTries, true}, {maxLateTries + 1, false}, {maxLateTries + 1, false}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// All traces of a log must share one quota for the search for load biases.
func TestTracesOfALogShareItsQuota(t *testing.T) {
	f := New(io.Discard, resolvingDialects(t))
	defer f.Close()
	f.tracer.begin()
	if f.tracer.trace.Quota != f.tracer.reader.Quota() {
		t.Error("a trace has a quota of its own")
	}
}
