package sgr_test

import (
	"fmt"

	"github.com/symfilter/symfilter/sgr"
)

func Example() {
	log := sgr.State{}.Apply([]byte("\x1b[1;31m")) // set by the log
	own := log.WithForeground(sgr.Blue)
	line := sgr.AppendTransition(nil, log, own)
	line = append(line, "main"...)
	line = sgr.AppendTransition(line, own, log)
	line = sgr.AppendTransition(line, log, sgr.State{})
	fmt.Printf("%q\n", line)
	// Output: "\x1b[34mmain\x1b[31m\x1b[0m"
}
