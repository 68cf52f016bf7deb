package markup_test

import (
	"fmt"
	"os"

	"github.com/symfilter/symfilter/markup"
)

func ExampleScanner() {
	var s markup.Scanner
	s.Reset([]byte("\x1b[31mcrash\x1b[0m at {{{bt:0:0x12345678:pc}}}, not at {{{pc:12}}}\n"))
	for tok, ok := s.Next(); ok; tok, ok = s.Next() {
		switch {
		case tok.Err != nil:
			fmt.Printf("bad   %q %v\n", tok.Raw, tok.Err)
		case tok.Kind == markup.Text:
			fmt.Printf("text  %q\n", tok.Raw)
		case tok.Kind == markup.SGR:
			fmt.Printf("sgr   %q\n", tok.Raw)
		case tok.Tag == markup.TagBT:
			bt, _ := markup.ParseAs[markup.BT](tok.Fields)
			fmt.Printf("frame %d at %#x\n", bt.Frame, bt.Addr)
		}
	}
	// Output:
	// sgr   "\x1b[31m"
	// text  "crash"
	// sgr   "\x1b[0m"
	// text  " at "
	// frame 0 at 0x12345678
	// text  ", not at "
	// bad   "{{{" pc: expected an address, found "12"
	// text  "pc:12}}}\n"
}

func ExampleWriter() {
	w := markup.NewWriter(os.Stdout)
	w.Text([]byte("called from "))
	w.Element(markup.PC{Addr: 0x12345678, Kind: markup.ReturnAddress})
	w.Text([]byte(", says a template: {{{name}}}\n"))
	w.Close()
	// Output: called from {{{pc:0x12345678:ra}}}, says a template: {{{symbol:{{{}}}name}}}
}
