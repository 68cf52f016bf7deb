package symfilter_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/buildid"
)

// Example filters a log, and prints it with the addresses symbolized. Its debug files are in the
// repository. Those of your program may be in the system's folder, or come from the servers in
// DEBUGINFOD_URLS.
func Example() {
	o := symfilter.Defaults()
	o.Symbols.DebugDirs = []string{"testdata/debug"}
	o.Symbols.NoCache = true
	f, err := symfilter.New(os.Stdout, o)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	io.Copy(f, strings.NewReader(crash))
	// Output:
	// [[[ELF module #0x0 "inventory"; BuildID=779e1ed32e11627838c3d1658cabab0af2a008bd [0x555555554000-0x555555558fff](rx)]]]
	//         #0.1  0x0000555555555df8 main::$_1::operator()() const /src/inventory/main.cc:56:10 (inventory+0x1df8)
	//         #0    0x0000555555555df8 int inventory::run<main::$_1>(main::$_1) /src/inventory/main.cc:40:19 (inventory+0x1df8)
}

// Lookup returns the frames at one address of one build.
func ExampleOpened_Lookup() {
	opened, err := symfilter.Symbols{DebugDirs: []string{"testdata/debug"}, NoCache: true}.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer opened.Close()
	id, err := buildid.Parse([]byte("779e1ed32e11627838c3d1658cabab0af2a008bd"))
	if err != nil {
		log.Fatal(err)
	}
	answers, err := opened.Lookup(context.Background(), id, 0x1df8)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range answers[0] {
		fmt.Printf("%s %s:%d\n", f.Func, f.File, f.Line)
	}
	// Output:
	// main::$_1::operator()() const /src/inventory/main.cc:56
	// int inventory::run<main::$_1>(main::$_1) /src/inventory/main.cc:40
}

// A logger that writes to a Filter prints the names of addresses in its records. The elements that
// describe the modules must come before the records. In this example, the modules are those of a
// device whose addresses the program logs.
func Example_slog() {
	o := symfilter.Defaults()
	o.Symbols.DebugDirs = []string{"testdata/debug"}
	o.Symbols.NoCache = true
	f, err := symfilter.New(os.Stdout, o)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	io.WriteString(f, "{{{module:0:inventory:elf:779e1ed32e11627838c3d1658cabab0af2a008bd}}}\n{{{mmap:0x555555554000:0x5000:load:0:rx:0x0}}}\n")
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	logger.Error("request failed", "at", "{{{pc:0x555555555df8}}}")
	// Output:
	// [[[ELF module #0x0 "inventory"; BuildID=779e1ed32e11627838c3d1658cabab0af2a008bd [0x555555554000-0x555555558fff](rx)]]]
	// level=ERROR msg="request failed" at=main::$_1::operator()() const[/src/inventory/main.cc:56] inlined into int inventory::run<main::$_1>(main::$_1)[/src/inventory/main.cc:40]
}

const crash = `{{{module:0:inventory:elf:779e1ed32e11627838c3d1658cabab0af2a008bd}}}
{{{mmap:0x555555554000:0x5000:load:0:rx:0x0}}}
    {{{bt:0:0x0000555555555df9:ra}}}
`
