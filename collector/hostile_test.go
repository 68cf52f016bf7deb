package collector

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// The key of a resource must be short, and be made only once for all its records. A batch may have
// 100,000 records in a resource with 100,000 attributes, or with maps a million levels deep.
func TestKeysOfHostileResources(t *testing.T) {
	fuzztest.WithoutRace(t)
	const many = 2000
	for name, fill := range map[string]func(pcommon.Map){
		"many attributes": func(m pcommon.Map) {
			for i := range many {
				m.PutDouble(strings.Repeat("a", i), 0.5)
			}
		},
		"a long key": func(m pcommon.Map) { m.PutStr("service.instance.id", strings.Repeat("a", many)) },
		"lists in lists": func(m pcommon.Map) {
			list := m.PutEmptySlice("service.instance.id")
			for range many {
				list = list.AppendEmpty().SetEmptySlice()
			}
		},
		"maps in maps": func(m pcommon.Map) {
			for range many {
				m = m.PutEmptyMap("service.instance.id")
			}
		},
	} {
		k := keys{names: testConfig().Key}
		r := pcommon.NewResource()
		fill(r.Attributes())
		k.enter(r)
		record := pcommon.NewMap()
		if n := len(k.of(record)); n == 0 || n > maxKey {
			t.Errorf("%s: a key of %d bytes", name, n)
		}
		if n := testing.AllocsPerRun(10, func() { k.of(record) }); n > 0 {
			t.Errorf("%s: the key of another record takes %v allocations", name, n)
		}
	}
}

// If the processor is shut down while a batch waits for a server, the batch must pass without
// names. A batch after the shutdown must pass unchanged.
func TestBatchesAtTheShutdown(t *testing.T) {
	asked := make(chan bool, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- true
		<-r.Context().Done()
	}))
	defer s.Close()
	c := testConfig()
	c.Symbols.DebuginfodURLs, c.Symbols.CacheDirectory = []string{s.URL}, t.TempDir()
	c.Patience = Patience{Servers: maxPatience}
	p := newLogsProcessor(nopSettings(), c, consumertest.NewNop(), &factory{all: make(map[*Config]*shared)})
	if err := p.start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	lines := []string{"{{{module:0:m:elf:0123456789abcdef}}}", "{{{mmap:0x1000:0x1000:load:0:rx:0}}}", "{{{bt:0:0x1010:pc}}}", "end"}
	waiting := batchOf("a", lines...)
	done := make(chan bool)
	go func() {
		p.do(waiting)
		close(done)
	}()
	<-asked
	if err := p.shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	<-done
	if got := bodiesOf(waiting); !strings.Contains(got, "(m+0x10)") || !strings.HasSuffix(strings.TrimSuffix(got, "\n"), "end") {
		t.Errorf("the batch that waited:\n%s", got)
	}
	after := batchOf("a", lines...)
	p.do(after)
	if got, want := bodiesOf(after), bodiesOf(batchOf("a", lines...)); got != want {
		t.Errorf("the batch after the shutdown:\n%s", got)
	}
}
