package daemon

import (
	"testing"

	"go.uber.org/goleak"
)

// A goroutine in lineReader.read is not a leak: a read of standard input cannot be interrupted, and
// may outlive a daemon.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/symfilter/symfilter/internal/daemon.(*lineReader).read"))
}
