package object

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// watch watches the rest of the test: it must not take long or much memory.
func watch(t *testing.T) {
	t.Helper()
	t.Cleanup(fuzztest.Watch(t, t.Name()))
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
