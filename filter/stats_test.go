package filter_test

import (
	"io"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/filter"
)

// A Filter and Lines count the same for the same log, and the Cache what they have asked it.
func TestStats(t *testing.T) {
	want := filter.Stats{Lines: 12, Elements: 15, Resolved: 4, Unresolved: 2}
	o := filter.Options{Symbolizer: newSymbolizer(t), Patience: patient, Cache: filter.NewCache(1 << 20)}
	f := filter.New(io.Discard, o)
	io.WriteString(f, page)
	f.Close()
	if got := f.Stats(); got != want {
		t.Errorf("a Filter: got %+v, want %+v", got, want)
	}
	cold := o.Cache.Stats()
	if cold.Misses != 3 || cold.Hits != 1 || cold.Bytes == 0 || cold.Budget != 1<<20 {
		t.Errorf("the cache: %+v", cold)
	}
	l := filter.NewLines(o)
	var c filter.Context
	for line := range strings.Lines(page) {
		l.Append(nil, &c, []byte(line))
	}
	if got := l.Stats(); got != want {
		t.Errorf("Lines: got %+v, want %+v", got, want)
	}
	if warm := o.Cache.Stats(); warm.Hits <= cold.Hits || warm.Misses != cold.Misses || warm.Bytes != cold.Bytes {
		t.Errorf("the cache is %+v after the same log, and was %+v before", warm, cold)
	}
}
