package rtrace_test

import (
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/rtrace"
	"github.com/symfilter/symfilter/symbolize"
)

// A report is printed again with its frames resolved, without the resources that were freed. The
// report names another path of the program, which the prefix map replaces.
func ExampleNewReport() {
	const program = "../symbolize/testdata/arch/x86_64.elf"
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: []string{program}})}})
	defer s.Close()
	w := rtrace.NewReport(os.Stdout, rtrace.Options{
		ReportOptions: symbolize.ReportOptions{
			Symbolizer: s,
			Wait:       time.Minute,
			PrefixMap:  []buildid.PrefixMap{{Old: "/lib/prog.so", New: program}},
		},
		Processing: rtrace.Processing{Leaks: true},
	})
	if _, err := io.Copy(w, strings.NewReader(trace)); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// version=2.0, arch=x86_64, pid=1, filter=leaks|resolve, backtrace depth=10, origin=sp-rtrace 1.6
	// <1> : memory (memory in heap)
	// : /lib/prog.so => 0x7f0000001000-0x7f0000002000
	// 2. malloc<memory>(20) = 0x20
	// 	0x7f0000001380 in outer() at /src/prog.c:24
	//
	// # Resource - memory (memory in heap):
	// # 1 block(s) leaked with total size of 20 bytes
}

const trace = `version=2.0, arch=x86_64, pid=1, backtrace depth=10, origin=sp-rtrace 1.6
<1> : memory (memory in heap)
: /lib/prog.so => 0x7f0000001000-0x7f0000002000
1. malloc<memory>(10) = 0x10
	0x7f0000001380

2. malloc<memory>(20) = 0x20
	0x7f0000001380

3. free<memory>(0x10)
	0x7f0000001380
`
