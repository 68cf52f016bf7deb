package callgrind

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkReader reads a profile in blocks of the size that the command uses.
func BenchmarkReader(b *testing.B) {
	var profile bytes.Buffer
	profile.WriteString("version: 1\npositions: instr line\nevents: Ir\n\n")
	for i := range 4096 {
		fmt.Fprintf(&profile, "fl=(%d) file%[1]d.c\nfn=(%[1]d) function%[1]d\n0x%x %d 7\n+3 +1 2\n+4 * 11\ncfn=(%d)\ncalls=3 0x4000 16\n+2 +1 90\n+2 * 1\n\n", i+1, 0x4000+i*64, 10+i, i/2+1)
	}
	b.SetBytes(int64(profile.Len()))
	for b.Loop() {
		records := 0
		r := newReader(func(*record) error { records++; return nil }, nil, nil)
		for p := profile.Bytes(); len(p) > 0; {
			n, err := r.Write(p[:min(len(p), 256<<10)])
			if err != nil {
				b.Fatal(err)
			}
			p = p[n:]
		}
		if err := r.Close(); err != nil || records < 4*4096 {
			b.Fatalf("%d records, %v", records, err)
		}
	}
}
