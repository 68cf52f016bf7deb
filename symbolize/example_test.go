package symbolize_test

import (
	"context"
	"fmt"
	"log"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// Ask returns the frames at one address of one build, innermost first.
func ExampleSymbolizer_Ask() {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../testdata/debug")}})
	defer s.Close()
	id, err := buildid.Parse([]byte("779e1ed32e11627838c3d1658cabab0af2a008bd"))
	if err != nil {
		log.Fatal(err)
	}
	frames, err := s.Ask(context.Background(), nil, symbolize.Location{ID: id, Addr: 0x1df8}, symbolize.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range frames {
		fmt.Printf("%s %s:%d inlined %v\n", f.Func, f.File, f.Line, f.Inlined)
	}
	// Output:
	// main::$_1::operator()() const /src/inventory/main.cc:56 inlined true
	// int inventory::run<main::$_1>(main::$_1) /src/inventory/main.cc:40 inlined false
}

// A program that must not wait takes the answers that are known at once. Other answers are found in
// the background.
func ExampleSymbolizer_Ask_now() {
	came := make(chan buildid.ID)
	s := symbolize.New(symbolize.Options{
		Finders: []symbolize.Finder{buildid.NewTree("../testdata/debug")},
		Came:    func(id buildid.ID) { came <- id },
	})
	defer s.Close()
	id, err := buildid.Parse([]byte("779e1ed32e11627838c3d1658cabab0af2a008bd"))
	if err != nil {
		log.Fatal(err)
	}
	l := symbolize.Location{ID: id, Addr: 0x1df8}
	_, err = s.Ask(context.Background(), nil, l, symbolize.Policy{Wait: symbolize.Now})
	fmt.Println(err)
	fmt.Println("the file of", <-came, "is here")
	// Output:
	// the search for the debug file has not ended
	// the file of 779e1ed32e11627838c3d1658cabab0af2a008bd is here
}
