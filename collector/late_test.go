package collector

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A slowFinder answers each search after a time: from tree, or with fs.ErrNotExist if tree is nil.
type slowFinder struct {
	tree  *buildid.Tree
	after time.Duration // negative: never
}

func (s slowFinder) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	var come <-chan time.Time
	if s.after >= 0 {
		come = time.After(s.after)
	}
	select {
	case <-come:
		if s.tree == nil {
			return nil, fs.ErrNotExist
		}
		return s.tree.Find(ctx, q, note)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// startWith starts a processor with these options of its Symbolizer. The caller shuts the processor
// down, since a synctest bubble must end first.
func startWith(t *testing.T, c *Config, o symbolize.Options) (*logsProcessor, *consumertest.LogsSink) {
	t.Helper()
	sink := new(consumertest.LogsSink)
	p := newLogsProcessor(nopSettings(), c, sink, &factory{all: make(map[*Config]*shared), symbolizer: o})
	if err := p.start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	return p, sink
}

// A batch must wait for all its debug files together no longer than the patience, whether a network
// folder or a server blocks. The next batch must not wait again.
func TestABatchWaitsNoLongerThanThePatience(t *testing.T) {
	lines := linesOf(t, "crash.log")
	never := slowFinder{after: -1}
	quick := slowFinder{tree: buildid.NewTree(debugFiles)}
	for _, test := range []struct {
		name     string
		patience Patience
		o        symbolize.Options
		first    time.Duration // duration of the first batch
		resolved bool          // the second batch has names
	}{
		{"no patience", Patience{}, symbolize.Options{Finders: []symbolize.Finder{never}}, 0, false},
		{"a folder that blocks", Patience{Local: 2 * time.Second}, symbolize.Options{Finders: []symbolize.Finder{never}}, 2 * time.Second, false},
		{"a server that blocks, and no patience with it", Patience{Local: 2 * time.Second}, symbolize.Options{Finders: []symbolize.Finder{slowFinder{}}, Servers: []symbolize.Finder{never}}, 0, false},
		{"a server that blocks", Patience{Local: time.Second, Servers: 3 * time.Second}, symbolize.Options{Finders: []symbolize.Finder{slowFinder{}}, Servers: []symbolize.Finder{never}}, 3 * time.Second, false},
		{"a server that is slow", Patience{Servers: 3 * time.Second}, symbolize.Options{Finders: []symbolize.Finder{slowFinder{}}, Servers: []symbolize.Finder{slowFinder{quick.tree, time.Second}}}, time.Second, true},
		{"files that are here", Patience{Local: 2 * time.Second}, symbolize.Options{Finders: []symbolize.Finder{quick}}, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := testConfig()
				c.Patience = test.patience
				p, _ := startWith(t, c, test.o)
				defer p.shutdown(context.Background())
				began := time.Now()
				p.do(batchOf("a", lines...))
				if took := time.Since(began); took != test.first {
					t.Errorf("the first batch took %s, want %s", took, test.first)
				}
				began = time.Now()
				ld := batchOf("b", lines...)
				p.do(ld)
				if took := time.Since(began); took != 0 {
					t.Errorf("the second batch took %s", took)
				}
				if got := firstBody(ld, 33); strings.Contains(got, "ledger.cc:27:16") != test.resolved {
					t.Errorf("the second batch has %q", got)
				}
			})
		})
	}
}

func firstBody(ld plog.Logs, i int) string {
	return ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(i).Body().Str()
}

// With EmitLate, each process must get one more record for a debug file that arrives late. The
// record must name the addresses that were unresolved.
func TestLateNames(t *testing.T) {
	lines := linesOf(t, "crash.log")
	for _, emit := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := testConfig()
			c.Patience = Patience{Local: time.Second}
			c.EmitLate = emit
			p, sink := startWith(t, c, symbolize.Options{Finders: []symbolize.Finder{slowFinder{}}, Servers: []symbolize.Finder{slowFinder{buildid.NewTree(debugFiles), time.Minute}}})
			defer p.shutdown(context.Background())
			p.do(batchOf("a", lines[4:35]...))
			p.do(batchOf("a", lines[33:36]...))
			p.do(batchOf("b", lines[4:34]...))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if !emit {
				if n := len(sink.AllLogs()); n != 0 {
					t.Errorf("%d records were sent late", n)
				}
				return
			}
			got := map[string]string{}
			for _, ld := range sink.AllLogs() {
				rl := ld.ResourceLogs().At(0)
				lr := rl.ScopeLogs().At(0).LogRecords().At(0)
				text := lr.Body().Str()
				module := strings.Fields(text)[3]
				got[get(rl.Resource().Attributes(), "service.instance.id")+" "+module] = text
				if late, ok := lr.Attributes().Get(lateAttribute); !ok || !late.Bool() {
					t.Errorf("%s is not set", lateAttribute)
				}
				list, _ := lr.Attributes().Get(framesAttribute)
				if list.Slice().Len() != strings.Count(text, "\n") {
					t.Errorf("%d frames for\n%s", list.Slice().Len(), text)
				}
			}
			ledger := "late names for libledger.so (BuildId: eecd138796b4297ca7ee7bb08854e1173fee4bff)\n" +
				"+0x1917 Pool<ledger::Order, 64ul>::next(unsigned long) const /src/inventory/pool.h:33:5" +
				" long ledger::(anonymous namespace)::sum<Pool<ledger::Order, 64ul>>(Pool<ledger::Order, 64ul> const&, unsigned int) /src/inventory/ledger.cc:13:32" +
				" ledger::Book::total(unsigned int) const /src/inventory/ledger.cc:27:16"
			for _, key := range []string{"a libledger.so", "b libledger.so"} {
				if diff := cmp.Diff(ledger, got[key]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
			if len(got) != len(sink.AllLogs()) || p.shared.lateRecords.Load() != int64(len(got)) || got["a inventory"] == "" {
				t.Errorf("%d records, counted as %d: %q", len(sink.AllLogs()), p.shared.lateRecords.Load(), got)
			}
		})
	}
}

// Addresses must be forgotten if their debug file does not arrive within idle_timeout.
func TestLateNamesAreNotAwaitedForEver(t *testing.T) {
	lines := linesOf(t, "crash.log")
	synctest.Test(t, func(t *testing.T) {
		c := testConfig()
		c.Patience, c.EmitLate = Patience{}, true
		p, sink := startWith(t, c, symbolize.Options{Finders: []symbolize.Finder{slowFinder{after: -1}}})
		defer p.shutdown(context.Background())
		p.do(batchOf("a", lines...))
		open := func() int {
			p.late.mu.Lock()
			defer p.late.mu.Unlock()
			return len(p.late.open)
		}
		if open() == 0 {
			t.Error("no address is open")
		}
		time.Sleep(c.IdleTimeout + time.Minute)
		synctest.Wait()
		if n := open(); n != 0 || len(sink.AllLogs()) != 0 {
			t.Errorf("%d modules are still open, %d records were sent", n, len(sink.AllLogs()))
		}
	})
}
