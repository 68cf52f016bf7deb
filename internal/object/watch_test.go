package object

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// watch fails the test if the rest of the test takes too much time or memory.
func watch(t *testing.T) {
	t.Helper()
	t.Cleanup(fuzztest.Watch(t, t.Name()))
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
