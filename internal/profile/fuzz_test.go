package profile

import (
	"bytes"
	"encoding/binary"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/report"
)

// addSeeds adds the profiles of testdata whose names begin with prefix.
func addSeeds(f *testing.F, prefix string) {
	names, err := filepath.Glob(filepath.Join("testdata", prefix+"*.txtar"))
	if err != nil || len(names) == 0 {
		f.Fatalf("%d seeds, %v", len(names), err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
}

// checkProfile checks that data does not make the reader panic, hang or exceed its memory. The
// output in pprof's format must be the same profile for symfilter and for pprof's library. The text
// must have no control characters.
func checkProfile(t *testing.T, data []byte) {
	const most = 64 << 20
	defer fuzztest.Watch(t, data)()
	budget := report.NewBudget(most, nil)
	p, err := Read(bytes.NewReader(data), Options{Options: report.Options{Memory: budget}})
	if err != nil {
		if n := budget.Used(); n != 0 {
			t.Errorf("%d bytes are still taken", n)
		}
		return
	}
	defer p.Close()
	var first, second bytes.Buffer
	p.Write(&first, Pprof, View{})
	again, err := Read(bytes.NewReader(first.Bytes()), Options{})
	if err != nil {
		t.Fatalf("%v in what was printed", err)
	}
	defer again.Close()
	again.Write(&second, Pprof, View{})
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("what was printed is read as another profile")
	}
	theirs, err := pprof.ParseData(first.Bytes())
	if err != nil {
		t.Errorf("pprof's library: %v", err)
	}
	if want, err := pprof.ParseUncompressed(data); err == nil && p.name == "pprof profile" && theirs != nil && want.CheckValid() == nil {
		if d := cmp.Diff(described(want), described(theirs)); d != "" {
			t.Errorf("pprof's library of the input (-), of what was printed (+):\n%s", d)
		}
	}
	for _, form := range []Output{Text, Folded} {
		var out strings.Builder
		p.Write(&out, form, View{Label: "FILE"})
		if text := out.String(); form == Text && (!utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' })) {
			t.Errorf("a control character in %q", text)
		}
	}
}

func FuzzPprof(f *testing.F) {
	f.Add([]byte("\x0a\x04\x08\x01\x10\x02\x12\x04\x0a\x01\x01\x10\x05\x22\x06\x08\x01\x18\x80\x20\x10\x01\x1a\x06\x08\x01\x10\x01\x18\x09\x2a\x04\x08\x01\x10\x01\x32\x00\x32\x03cpu\x32\x01s"))
	f.Add([]byte("\x0a\x04\x08\x01\x10\x02\x12\x02\x10\x05\x32\x00\x32\x03cpu\x32\x01s\x48\x07\x6a\x02\x01\x02\x70\x01"))
	f.Fuzz(checkProfile)
}

func FuzzGperftools(f *testing.F) {
	addSeeds(f, "gperftools")
	f.Add([]byte("heap profile: 3: 3 [6: 9] @ heap_v2/524288\n1: 2066 [3: 6198] @ 0x1011 0x1021\n"))
	f.Add(cpuProfile(binary.LittleEndian, 8, []uint64{3, 0x1010, 0x1021, 0x1031}, []uint64{1, 0x1051}))
	f.Add(cpuProfile(binary.BigEndian, 4, []uint64{3, 0x1010, 0x100f, 0x1031}, []uint64{1, 0x1051}))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkProfile(t, data)
		grows(t, data)
	})
}

func FuzzJemalloc(f *testing.F) {
	addSeeds(f, "jemalloc")
	f.Fuzz(func(t *testing.T, data []byte) {
		checkProfile(t, data)
		grows(t, data)
	})
}

// grows fails the test if the work of reading and printing data grows faster than its length.
func grows(t *testing.T, data []byte) {
	fuzztest.Growth(t, data, func(data []byte) {
		if p, err := Read(bytes.NewReader(data), Options{}); err == nil {
			p.Write(io.Discard, Text, View{})
			p.Close()
		}
	})
}
