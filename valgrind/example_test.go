package valgrind_test

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/symbolize"
	"github.com/symfilter/symfilter/valgrind"
)

// The program is stripped. Programs are usually at the paths in the report, and debug files in the
// system's folder; here both are below testdata.
func ExampleNewMarkup() {
	sysroot, err := filepath.Abs("testdata/recorded")
	if err != nil {
		log.Fatal(err)
	}
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree(filepath.Join(sysroot, "debug"))}})
	defer s.Close()
	f := filter.New(os.Stdout, filter.Options{Symbolizer: s, Patience: filter.Patience{Local: time.Minute}})
	r := valgrind.NewMarkup(f, valgrind.Options{ReportOptions: symbolize.ReportOptions{Symbolizer: s, Sysroot: sysroot, Wait: time.Minute}})
	io.WriteString(r, errorInXML)
	if err := r.Close(); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [[[ELF module #0x0 "lines"; BuildID=a859db85f1049629279dfaae0dd4e3fd3b2d0176 [0x108000-0x108893](rx),[0x109898-0x109b17](rw)]]]
	//
	// Invalid read of size 1 [InvalidRead 0x0, thread 1]
	//     #0    0x0000000000108768 main /src/lines.c:12:9 (lines+0x768)
}

func ExampleReader() {
	r := valgrind.NewReader(func(rec *valgrind.Record) error {
		if rec.Name == "error" {
			fmt.Printf("%s: %s, %d frames\n", rec.Get("kind"), rec.Get("what"), len(rec.Frames))
		}
		return nil
	})
	io.WriteString(r, errorInXML)
	if err := r.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// InvalidRead: Invalid read of size 1, 1 frames
}

const errorInXML = `<?xml version="1.0"?>
<valgrindoutput>
<error>
  <unique>0x0</unique>
  <tid>1</tid>
  <kind>InvalidRead</kind>
  <what>Invalid read of size 1</what>
  <stack>
    <frame>
      <ip>0x108768</ip>
      <obj>/srv/app/lines</obj>
    </frame>
  </stack>
</error>
</valgrindoutput>
`
