package source_test

import (
	"fmt"
	"log"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/internal/source"
	"github.com/symfilter/symfilter/symbolize"
)

func ExampleFinder() {
	roots, err := source.OpenRoots([]string{"../../testdata"})
	if err != nil {
		log.Fatal(err)
	}
	defer roots.Close()
	symbolizer := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../../testdata/debug")}})
	defer symbolizer.Close()
	finder := source.NewFinder(source.Options{
		Symbolizer: symbolizer,
		Roots:      roots,
		PrefixMap:  prefixmap.Maps{{Old: "/src", New: "../../testdata"}},
		Patience:   time.Minute,
	})
	defer finder.Close()

	id, err := buildid.Parse([]byte("eecd138796b4297ca7ee7bb08854e1173fee4bff"))
	if err != nil {
		log.Fatal(err)
	}
	at := symbolize.Location{ID: id, Addr: 0x1a24}
	// as returned by Symbolizer.Ask
	frames := []symbolize.Frame{{File: "/src/inventory/ledger.cc", Line: 31}}
	s := finder.Snippet(at, &frames[0])
	fmt.Printf("%d: %s (verified: %v)\n", s.First, s.Lines[0], s.Verified)
	// Output:
	// 31:   Orders::destroy(static_cast<Orders *>(orders_));  // orders_ stays: the mistake that this program shows (verified: true)
}

func ExampleTemplate_Append() {
	template, err := source.ParseTemplate("github:acme/inventory@3f2a91c", "")
	if err != nil {
		log.Fatal(err)
	}
	url, ok := template.Append(nil, &source.Fields{Rel: "src/ledger book.cc", Line: 31})
	fmt.Println(string(url), ok)
	// Output:
	// https://github.com/acme/inventory/blob/3f2a91c/src/ledger%20book.cc#L31 true
}
