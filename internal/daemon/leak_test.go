package daemon

import (
	"testing"

	"go.uber.org/goleak"
)

// No goroutine outlives a daemon but one that reads standard input, which cannot be interrupted.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/symfilter/symfilter/internal/daemon.(*lineReader).read"))
}
