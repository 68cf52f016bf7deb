package symfilter

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// Lookup must return the frames of repeated addresses each time, and no frames for addresses
// without a symbol.
func TestAnswersComeInTheOrderOfTheAddresses(t *testing.T) {
	opened, err := Symbols{DebugDirs: []string{"testdata/debug"}, NoCache: true, NoDefaultDebugDirs: true}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	id, err := buildid.Parse([]byte("779e1ed32e11627838c3d1658cabab0af2a008bd"))
	if err != nil {
		t.Fatal(err)
	}
	addresses := []uint64{0x1df8, 0x10, 0x1000, 0x1df8}
	all, err := opened.Lookup(t.Context(), id, addresses...)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i, frames := range all {
		fmt.Fprintf(&got, "%#x\n", addresses[i])
		for _, f := range frames {
			fmt.Fprintf(&got, "  %s %s:%d\n", f.Func, f.File, f.Line)
		}
	}
	const inline = `0x1df8
  main::$_1::operator()() const /src/inventory/main.cc:56
  int inventory::run<main::$_1>(main::$_1) /src/inventory/main.cc:40
`
	if diff := cmp.Diff(inline+"0x10\n0x1000\n"+inline, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	unknown, err := buildid.FromBytes([]byte("unknown"))
	if err != nil {
		t.Fatal(err)
	}
	if frames, err := opened.Lookup(t.Context(), unknown, 1, 2); len(frames) != 2 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of an unknown build: %v, %v", frames, err)
	}
	if frames, err := opened.Lookup(t.Context(), unknown); len(frames) != 0 || err != nil {
		t.Errorf("no address: %v, %v", frames, err)
	}
}
