package object

import (
	"errors"
	"runtime/debug"

	"github.com/symfilter/symfilter/internal/pagefault"
)

// ErrFault reports mapped bytes that cannot be read.
var ErrFault = errors.New("unreadable while in use: the file was truncated, or its disk fails; to replace a file, rename the new one over it")

// Guard calls use, which reads mapped bytes, and returns [ErrFault] if they cannot be read. Other
// panics continue. Guard protects only the calling goroutine.
func Guard(use func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if !pagefault.Is(r) {
				panic(r)
			}
			err = ErrFault
		}
	}()
	use()
	return nil
}
