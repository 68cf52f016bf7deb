package daemon

import (
	"testing"

	"go.uber.org/goleak"
)

// A read of standard input cannot be interrupted, so its goroutine may outlive a daemon.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/symfilter/symfilter/internal/daemon.(*lineReader).read"))
}
