package profile_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/profile"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// A heap profile of jemalloc becomes folded stacks. If the mapped files or their debug files exist,
// the stacks have function names.
func Example() {
	const heap = `heap_v2/524288
  t*: 1: 2097152 [0: 0]
@ 0x100001030 0x100001020
  t*: 1: 2097152 [0: 0]

MAPPED_LIBRARIES:
100001000-100002000 r-xp 00001000 fe:00 1 /opt/app
`
	symbols := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("/usr/lib/debug"), report.Files{}}})
	defer symbols.Close()
	p, err := profile.Read(strings.NewReader(heap), profile.Options{Options: report.Options{Symbolizer: symbols, Sysroot: "/nonexistent"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	p.Write(os.Stdout, profile.Folded, profile.View{Show: "inuse_space"})
	// Output: app+0x101f;app+0x102f 2136279
}
