package filter

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestHotFramesOfSanitizersAllocateNothing(t *testing.T) {
	fuzztest.WithoutRace(t)
	const id = "(BuildId: a0a1a2a3a4a5a6a7)"
	for name, frame := range map[string]string{
		"inlined calls": "    #%d 0x55d01234017a  (/opt/shop/a.out+0x40017a) " + id,
		"half named":    "    #%d 0x55d01234017a in run (/opt/shop/a.out+0x40017a) " + id,
		"without line":  "    #%d 0x55d01234018d  (/opt/shop/a.out+0x40018d) " + id,
		"named":         "    #%d 0x55d01234018d in main /src/main.c:7:3",
		"thread":        "    #%d <null> <null> (a.out+0x40017a) " + id,
		"of symfilter":  "    #%d    0x000055d01234018d (a.out+0x40018d) " + id,
	} {
		var log bytes.Buffer
		for i := range 300 {
			fmt.Fprintf(&log, frame+"\n", i)
		}
		f := New(io.Discard, Options{Symbolizer: testSymbolizer(t), Patience: patient})
		write := func() {
			if _, err := f.Write(log.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			write()
		}
		if n := testing.AllocsPerRun(20, write); n >= 3 {
			t.Errorf("%s: 300 frames allocate %v times", name, n)
		}
	}
}
