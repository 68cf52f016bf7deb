package filter_test

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/symbolize"
)

// A Filter symbolizes a log as a stream.
func ExampleFilter() {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("testdata/debug")}})
	defer s.Close()
	f := filter.New(os.Stdout, filter.Options{
		Symbolizer:  s,
		Patience:    filter.Patience{Local: 2 * time.Second},
		ModuleLines: filter.ModuleLinesShort,
	})
	io.Copy(f, strings.NewReader(`{{{module:0:/opt/shop:elf:a0a1a2a3a4a5a6a7}}}
{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}
{{{bt:0:0x50017a:pc}}}
{{{bt:1:0x50018e:ra}}}
`))
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [[[ELF module #0x0 "shop"; BuildID=a0a1a2a3a4a5a6a7]]]
	//     #0.1  0x000000000050017a ns::inner(int) /src/a.cpp:9:64 (/opt/shop+0x40017a)
	//     #0.2  0x000000000050017a ns::middle(int) /src/a.cpp:10:63 (/opt/shop+0x40017a)
	//     #0    0x000000000050017a int ns::Foo::run<int>(int) /src/a.cpp:12:66 (/opt/shop+0x40017a)
	//     #1    0x000000000050018d bare+0x2 (/opt/shop+0x40018d)
}

// One Lines filters the records of many logs, each with the Context of its log. Options.Resolved
// receives the answers as structs.
func ExampleLines_Append() {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("testdata/debug")}})
	defer s.Close()
	lines := filter.NewLines(filter.Options{
		Symbolizer: s,
		Patience:   filter.Patience{Local: 2 * time.Second},
		Resolved:   func(r *filter.Resolved) { fmt.Printf("%s+%#x: %d frames\n", r.Module, r.Offset, len(r.Frames)) },
	})
	contexts := map[string]*filter.Context{"pod a": {}, "pod b": {}}
	for _, record := range []struct{ log, text string }{
		{"pod a", "{{{module:0:shop:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}"},
		{"pod b", "{{{module:0:shop:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x600000:0x1000:load:0:rx:0x400000}}}"},
		{"pod a", "stopped in {{{pc:0x50018d:pc}}}"},
		{"pod b", "stopped in {{{pc:0x60018d:pc}}}"},
	} {
		text, outcome := lines.Append(nil, contexts[record.log], []byte(record.text))
		if outcome.Resolved > 0 {
			fmt.Printf("%s: %s\n", record.log, text)
		}
	}
	// Output:
	// shop+0x40018d: 1 frames
	// pod a: stopped in bare+0x2
	// shop+0x40018d: 1 frames
	// pod b: stopped in bare+0x2
}
