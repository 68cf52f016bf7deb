package rtrace

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

// pprof's package profile must read the stacks with their values, labels, functions and mappings.
func TestStacksAreReadByPprof(t *testing.T) {
	const in = `version=2.0, arch=x86_64, pid=7, backtrace depth=10, origin=sp-rtrace 1.6
<1> : memory (memory in heap)
<2> : segment (shared memory) [refcount]
@ 1 : start
@ 2 : rest
: /bin/shop => 0x1000-0x2000
1. @3 malloc<memory>(16) = 0x1000
	0x1010 in fill() at /src/cart.c:7
	0x1020 in main() at /src/main.c:9

2. malloc<memory>(64) = 0x2000
	0x1020 in main() at /src/main.c:9

3. free<memory>(0x2000)

4. shmat<segment>(8) = 0x1000
	0x1020 in main() at /src/main.c:9

5. shmat<segment>(8) = 0x1000
	0x1020 in main() at /src/main.c:9

6. shmdt<segment>(0x1000)

7. free<memory>(0x9999)
`
	var out bytes.Buffer
	w := NewReport(&out, Options{Output: Pprof})
	if _, err := w.Write([]byte(in)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&out)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, v := range p.SampleType {
		fmt.Fprintf(&b, "%s/%s ", v.Type, v.Unit)
	}
	fmt.Fprintf(&b, "default %s\n", p.DefaultSampleType)
	for _, s := range p.Sample {
		fmt.Fprint(&b, s.Value, " ", s.Label)
		for _, l := range s.Location {
			fmt.Fprintf(&b, " %#x in %s:", l.Address, l.Mapping.File)
			for _, line := range l.Line {
				fmt.Fprintf(&b, " %s %s:%d", line.Function.Name, line.Function.Filename, line.Line)
			}
		}
		b.WriteByte('\n')
	}
	const want = "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes default inuse_space\n" +
		"[1 16 1 16] map[context:[start|rest] resource:[memory]] 0x100f in /bin/shop: fill /src/cart.c:7 0x101f in /bin/shop: main /src/main.c:9\n" +
		"[1 64 0 0] map[resource:[memory]] 0x101f in /bin/shop: main /src/main.c:9\n" +
		"[2 16 1 8] map[resource:[segment]] 0x101f in /bin/shop: main /src/main.c:9\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
