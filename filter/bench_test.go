package filter

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/symfilter/symfilter/internal/marks"
)

// benchmarkWrite repeatedly filters log in blocks of readBlock bytes.
func benchmarkWrite(b *testing.B, o Options, log []byte) {
	f := New(io.Discard, o)
	io.WriteString(f, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n")
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	before := processorTime()
	for b.Loop() {
		for rest := log; len(rest) > 0; {
			n := min(len(rest), readBlock)
			f.Write(rest[:n])
			rest = rest[n:]
		}
	}
	lines := bytes.Count(log, newline) * b.N
	b.ReportMetric(float64(processorTime()-before)/float64(lines), "cpu-ns/line")
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
		fmt.Fprintf(&log, "    #%d %#x  (/opt/shop/a.out+%#x) (BuildId: a0a1a2a3a4a5a6a7)\n", i%16, 0x55d012340138+uint64(i%0x50), 0x400138+i%0x50)
	}
	benchmarkWrite(b, Options{Symbolizer: testSymbolizer(b), Patience: patient}, log.Bytes())
}

// BenchmarkValues filters a log that has hexadecimal values in every line, but no frame.
func BenchmarkValues(b *testing.B) {
	var log bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&log, "Nov 20 10:%02d:%02d node%02d kernel: lease 0x%x: irq %d, status=0x%04x at 0x%016x (flags 0x%x)\n",
			i%60, i/60%60, i%40, i*7919, i%40, i%65536, uint64(i)*0x9e3779b97f4a7c15, i%64)
	}
	benchmarkWrite(b, Options{Symbolizer: testSymbolizer(b), Patience: patient}, log.Bytes())
}

// BenchmarkFind compares the two searches that read every byte of a log, on logs without a mark. A
// block of each log fits in the L2 cache.
func BenchmarkFind(b *testing.B) {
	for _, log := range []struct {
		name string
		line func(i int) string
	}{
		{"plain", func(i int) string {
			return fmt.Sprintf("2026-11-20T10:00:00.%06dZ host-07 svc[%d]: request worker {\"k\":%d} ended in %d ms\n", i, i%97, i, i*7)
		}},
		{"json", func(i int) string {
			return fmt.Sprintf("{\"time\":\"2026-11-20T10:00:00.%06dZ\",\"level\":\"info\",\"msg\":\"order %d\",\"from\":{\"origin\":\"10.0.%d.7\",\"n\":%d}}\n", i, i, i%256, i)
		}},
		{"values", func(i int) string {
			return fmt.Sprintf("Nov 20 08:00:%02d host-07 kernel: usb 1-1: irq=%d flags=0x%x status=0x%04x addr=0x%016x\n", i%60, i%40, i%64, i%65536, uint32(i)*0x9e3779b9)
		}},
		// Each line has the false mark " 0c".
		{"hexdump", func(i int) string { return fmt.Sprintf("%08x  % x\n", i, fmt.Sprint(uint32(i)*0x9e3779b9, "\x0c\x01")) }},
	} {
		var block []byte
		for i := 0; len(block) < 256<<10; i++ {
			block = append(block, log.line(i)...)
		}
		for _, search := range []struct {
			name string
			find func([]byte) (at, lines int)
		}{{"FindOpen", marks.FindOpen}, {"FindMark", marks.Find}} {
			b.Run(search.name+"/"+log.name, func(b *testing.B) {
				b.SetBytes(int64(len(block)))
				for b.Loop() {
					if at, _ := search.find(block); at != len(block) {
						b.Fatalf("a mark at %d: %.20q", at, block[at:])
					}
				}
			})
		}
	}
}
