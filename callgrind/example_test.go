package callgrind_test

import (
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/callgrind"
	"github.com/symfilter/symfilter/symbolize"
)

// The functions of a stripped program get their names from a debug file. Here the same ELF file is
// the program and its debug file; the profile names another path, which the prefix map replaces.
func ExampleNewReport() {
	const program = "../symbolize/testdata/arch/x86_64.elf"
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: []string{program}})}})
	defer s.Close()
	r := callgrind.NewReport(os.Stdout, callgrind.Options{
		ReportOptions: symbolize.ReportOptions{
			Symbolizer: s,
			Wait:       time.Minute,
			PrefixMap:  []buildid.PrefixMap{{Old: "/lib/prog.so", New: program}},
		},
		Label: "callgrind.out.1",
	})
	if _, err := io.Copy(r, strings.NewReader(profile)); err != nil {
		log.Fatal(err)
	}
	if err := r.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Profile   callgrind.out.1, callgrind-3.19.0
	// Command   ./prog
	// Total     20 Ir
	//
	//   Ir incl    Ir self  calls  function  file:line [object]
	// 20 100.0%  12  60.0%      -  outer  /src/prog.c:22 [prog.so]
	//  8  40.0%   8  40.0%      2  local  /src/prog.c:18 [prog.so]
}

const profile = `# callgrind format
version: 1
creator: callgrind-3.19.0
cmd: ./prog
positions: instr line
events: Ir

ob=/lib/prog.so
fl=???
fn=0x0000000000001370
0x1370 0 12
cfn=0x00000000000013b0
calls=2 0x13b0 0
0x1378 0 8
fn=0x00000000000013b0
0x13b0 0 8
totals: 20
`

// Two profiles are compared by function. A limit decides whether a change is a failure.
func ExampleNewComparison() {
	limit, err := callgrind.ParseLimit("work:Ir=+10%")
	if err != nil {
		log.Fatal(err)
	}
	c := callgrind.NewComparison(os.Stdout, callgrind.Options{Limits: []callgrind.Limit{limit}})
	for _, side := range []struct {
		report  *callgrind.Report
		label   string
		profile string
	}{
		{c.Before, "before.out", "events: Ir\nfn=main\n1 10\nfn=work\n5 100\n"},
		{c.After, "after.out", "events: Ir\nfn=main\n1 10\nfn=work\n5 125\n"},
	} {
		if err := side.report.Begin(callgrind.Input{Label: side.label}); err != nil {
			log.Fatal(err)
		}
		if _, err := io.Copy(side.report, strings.NewReader(side.profile)); err != nil {
			log.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		log.Fatal(err)
	}
	if c.Failed() {
		os.Stdout.WriteString("failed\n")
	}
	// Output:
	// Before    before.out
	// After     after.out
	//
	// Ir self before  after      change  function  file:line [object]
	//            110    135  +25 +22.7%  total
	//            100    125  +25 +25.0%  work  ???:5
	//
	// 1 function without a change
	// limit work:Ir=+10%  +25.0%  exceeded
	// failed
}
