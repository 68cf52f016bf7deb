package filter

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// benchmarkWrite filters log again and again in blocks of readBlock bytes.
func benchmarkWrite(b *testing.B, o Options, log []byte) {
	f := New(io.Discard, o)
	io.WriteString(f, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n")
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		for rest := log; len(rest) > 0; {
			n := min(len(rest), readBlock)
			f.Write(rest[:n])
			rest = rest[n:]
		}
	}
}

func BenchmarkPlain(b *testing.B) {
	var log bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&log, "2026-11-20T10:00:00.%06dZ host-07 svc[%d]: request worker {\"k\":%d} ended in %d ms\n", i, i%97, i, i*7)
	}
	for _, diagnose := range []func(Diagnostic){nil, func(Diagnostic) {}} {
		b.Run(fmt.Sprintf("diagnose=%v", diagnose != nil), func(b *testing.B) {
			benchmarkWrite(b, Options{Diagnose: diagnose}, log.Bytes())
		})
	}
}

func BenchmarkHotBacktrace(b *testing.B) {
	var log bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&log, "{{{bt:%d:%#x:ra}}}\n", i%16, 0x500138+i%0x50)
	}
	benchmarkWrite(b, Options{Symbolizer: testSymbolizer(b), Patience: patient}, log.Bytes())
}

// BenchmarkHotSanitizer is BenchmarkHotBacktrace for frames of a sanitizer's report.
func BenchmarkHotSanitizer(b *testing.B) {
	var log bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&log, "    #%d %#x  (/opt/shop/a.out+%#x) (BuildId: a0a1a2a3a4a5a6a7)\n", i%16, 0x55d012340138+i%0x50, 0x400138+i%0x50)
	}
	benchmarkWrite(b, Options{Symbolizer: testSymbolizer(b), Patience: patient}, log.Bytes())
}
