package valgrind

import (
	"bytes"
	"fmt"
	"testing"
)

// largeReport returns a report of about size bytes, with errors like Memcheck's.
func largeReport(size int) []byte {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n<protocolversion>4</protocolversion>\n<protocoltool>memcheck</protocoltool>\n\n")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "<error>\n  <unique>%#x</unique>\n  <tid>1</tid>\n  <kind>Leak_DefinitelyLost</kind>\n  <xwhat>\n    <text>%d bytes in 1 blocks are definitely lost</text>\n    <leakedbytes>%[2]d</leakedbytes>\n    <leakedblocks>1</leakedblocks>\n  </xwhat>\n  <stack>\n", i, i)
		for j := range 12 {
			fmt.Fprintf(&b, "    <frame>\n      <ip>%#X</ip>\n      <obj>/usr/lib/x86_64-linux-gnu/libexample.so.%d</obj>\n      <fn>ns::Example&lt;int&gt;::run(int, char const*)</fn>\n      <dir>/build/src/example</dir>\n      <file>example.cpp</file>\n      <line>%d</line>\n    </frame>\n", 0x4000000+(i*31+j*17)%4096, j%5, j+100)
		}
		b.WriteString("  </stack>\n</error>\n\n")
	}
	b.WriteString("</valgrindoutput>\n")
	return b.Bytes()
}

func BenchmarkReader(b *testing.B) {
	report := largeReport(16 << 20)
	b.SetBytes(int64(len(report)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(func(*Record) error { return nil })
		for rest := report; len(rest) > 0; {
			n := min(len(rest), 256<<10)
			r.Write(rest[:n])
			rest = rest[n:]
		}
		r.Close()
	}
}
