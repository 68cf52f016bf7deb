package collector

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
)

func startTraces(t *testing.T, cfg *Config, next consumer.Traces) processor.Traces {
	t.Helper()
	p, err := NewFactory().CreateTraces(context.Background(), nopSettings(), cfg, next)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	return p
}

// An attribute may be both in key and in attributes. An event without the attribute must not get
// the value of its span.
func TestKeysOfSpansMayBeFiltered(t *testing.T) {
	cfg := testConfig()
	cfg.Attributes = append(cfg.Attributes, "host.name")
	next := new(consumertest.TracesSink)
	p := startTraces(t, cfg, next)
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.Attributes().PutStr("host.name", "a")
	event := span.Events().AppendEmpty()
	event.Attributes().PutStr("exception.stacktrace", "#0 0x1 (a+0x1)")
	if err := p.ConsumeTraces(context.Background(), td); err != nil {
		t.Fatal(err)
	}
	if err := p.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, ok := event.Attributes().Get("host.name"); ok || len(next.AllTraces()) != 1 {
		t.Error("the event has got an attribute of its span")
	}
}

// Exceptions in the events of spans must get the same lines as in log records. All other data of
// spans must stay unchanged, including the order.
func TestExceptionsOfSpansGetTheirLines(t *testing.T) {
	cfg := testConfig()
	cfg.Frames, cfg.EmitLate = true, true
	next := new(consumertest.TracesSink)
	p := startTraces(t, cfg, next)
	crash := strings.Join(linesOf(t, "asan.log"), "\n")
	make := func(stack string) ptrace.Traces {
		td := ptrace.NewTraces()
		for range 2 {
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.instance.id", "a")
			spans := rs.ScopeSpans().AppendEmpty().Spans()
			spans.AppendEmpty().SetName("quiet")
			span := spans.AppendEmpty()
			span.SetSpanID([8]byte{1, 2})
			span.Attributes().PutInt("process.pid", 7)
			span.Events().AppendEmpty().SetName("begin")
			e := span.Events().AppendEmpty()
			e.SetName("exception")
			e.Attributes().PutStr("exception.type", "0x1 (a+0x1)")
			e.Attributes().PutStr("exception.stacktrace", stack)
		}
		return td
	}
	if err := p.ConsumeTraces(context.Background(), make(crash)); err != nil {
		t.Fatal(err)
	}
	if err := p.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}

	logs, sink := start(t, testConfig(), nil)
	record := batchOf("a", "")
	record.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().PutStr("exception.stacktrace", crash)
	consume(t, logs, record)
	v, _ := sink.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().Get("exception.stacktrace")
	if v.Str() == crash {
		t.Fatal("the log has no names")
	}
	want := make(v.Str())
	got := next.AllTraces()[0]
	for i, rs := range got.ResourceSpans().All() {
		attributes := rs.ScopeSpans().At(0).Spans().At(1).Events().At(1).Attributes()
		if frames, ok := attributes.Get(framesAttribute); !ok || frames.Slice().Len() == 0 {
			t.Errorf("resource %d: no facts about its frames", i)
		}
		if n, ok := attributes.Get(unresolvedAttribute); !ok || n.Int() == 0 {
			t.Errorf("resource %d: no number of addresses without a name", i)
		}
		attributes.Remove(framesAttribute)
		attributes.Remove(unresolvedAttribute)
	}
	var m ptrace.JSONMarshaler
	g, _ := m.MarshalTraces(got)
	w, _ := m.MarshalTraces(want)
	if diff := cmp.Diff(string(w), string(g)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
