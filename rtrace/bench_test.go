package rtrace

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/symfilter/symfilter/symbolize"
)

// largeReport returns a report of about size bytes. Its calls allocate and free blocks in turn,
// with backtraces of 16 frames in one file of the fixtures.
func largeReport(size int) []byte {
	var b bytes.Buffer
	b.WriteString("version=2.0, arch=x86_64, process=/bin/a, pid=312, backtrace depth=16, origin=sp-rtrace 1.6, \n<1> : memory (memory in heap)\n: /lib/prog64.so => 0x7f0000001000-0x7f0000002000\n")
	for i := 0; b.Len() < size; i++ {
		block := 0x55d000000000 + uint64(i/2%4096*64)
		if i%2 == 0 {
			fmt.Fprintf(&b, "%d. [14:54:%02d.%03d] malloc(%d) = %#x\n", i+1, i/1000%60, i%1000, i%100+1, block)
		} else {
			fmt.Fprintf(&b, "%d. [14:54:%02d.%03d] free(%#x)\n", i+1, i/1000%60, i%1000, block)
		}
		for j := range 16 {
			fmt.Fprintf(&b, "\t%#x\n", 0x7f0000001371+uint64(i*7+j*5)%0x50)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func benchmark(b *testing.B, form string, o Options) {
	input := largeReport(16 << 20)
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		w := translation(b, form, io.Discard, o)
		for rest := input; len(rest) > 0; {
			n := min(len(rest), 256<<10)
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Close()
	}
}

func BenchmarkForms(b *testing.B) {
	o := Options{ReportOptions: symbolize.ReportOptions{Symbolizer: newSymbolizer(b), PrefixMap: fixtures(b), Wait: 1 << 40}}
	for _, form := range []string{"rtrace", "json", "markup", "rtrace --leaks", "rtrace --compress", "rtrace --call-address=0x7f0000001372"} {
		b.Run(form, func(b *testing.B) { benchmark(b, form, o) })
	}
	b.Run("unresolved", func(b *testing.B) { benchmark(b, "rtrace", Options{}) })
}
