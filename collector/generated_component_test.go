// This file is written by hand in the form of mdatagen's output.

package collector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/symfilter/symfilter/collector/internal/metadata"
)

func TestComponentFactoryType(t *testing.T) {
	if got := NewFactory().Type(); got != metadata.Type {
		t.Errorf("got %s, want %s", got, metadata.Type)
	}
}

func TestComponentConfigStruct(t *testing.T) {
	if err := componenttest.CheckConfigStruct(NewFactory().CreateDefaultConfig()); err != nil {
		t.Error(err)
	}
}

func TestComponentLifecycle(t *testing.T) {
	factory := NewFactory()
	cm, err := confmaptest.LoadConf("metadata.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cfg := factory.CreateDefaultConfig()
	sub, err := cm.Sub("tests::config")
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.Unmarshal(&cfg); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		createFn func(processor.Settings) (component.Component, error)
	}{
		{"logs", func(set processor.Settings) (component.Component, error) {
			return factory.CreateLogs(context.Background(), set, cfg, consumertest.NewNop())
		}},
		{"traces", func(set processor.Settings) (component.Component, error) {
			return factory.CreateTraces(context.Background(), set, cfg, consumertest.NewNop())
		}},
		{"profiles", func(set processor.Settings) (component.Component, error) {
			return factory.CreateProfiles(context.Background(), set, cfg, consumertest.NewNop())
		}},
	} {
		t.Run(tt.name+"-shutdown", func(t *testing.T) {
			c, err := tt.createFn(processortest.NewNopSettings(metadata.Type))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Shutdown(context.Background()); err != nil {
				t.Fatal(err)
			}
		})
		t.Run(tt.name+"-lifecycle", func(t *testing.T) {
			c, err := tt.createFn(processortest.NewNopSettings(metadata.Type))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(context.Background(), componenttest.NewNopHost()); err != nil {
				t.Fatal(err)
			}
			if err := consumeLifecycleTest(c); err != nil {
				t.Error(err)
			}
			if err := c.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// consumeLifecycleTest gives a component a batch of its signal. The batch is read-only, unless the
// component declares that it modifies data.
func consumeLifecycleTest(c component.Component) error {
	switch e := c.(type) {
	case processor.Logs:
		logs := generateLifecycleTestLogs()
		if !e.Capabilities().MutatesData {
			logs.MarkReadOnly()
		}
		return e.ConsumeLogs(context.Background(), logs)
	case processor.Traces:
		traces := generateLifecycleTestTraces()
		if !e.Capabilities().MutatesData {
			traces.MarkReadOnly()
		}
		return e.ConsumeTraces(context.Background(), traces)
	case xprocessor.Profiles:
		profiles := generateLifecycleTestProfiles()
		if !e.Capabilities().MutatesData {
			profiles.MarkReadOnly()
		}
		return e.ConsumeProfiles(context.Background(), profiles)
	}
	return fmt.Errorf("%T consumes no signal", c)
}

func TestVerifyShutdown(t *testing.T) {
	processortest.VerifyShutdown(t, NewFactory(), NewFactory().CreateDefaultConfig())
}

func generateLifecycleTestLogs() plog.Logs {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("resource", "R1")
	l := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	l.Body().SetStr("test log message")
	l.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	return logs
}

func generateLifecycleTestTraces() ptrace.Traces {
	traces := ptrace.NewTraces()
	rs := traces.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("resource", "R1")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.Attributes().PutStr("test_attr", "value_1")
	span.SetName("test_span")
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(-1 * time.Second)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	return traces
}

func generateLifecycleTestProfiles() pprofile.Profiles {
	profiles := pprofile.NewProfiles()
	rp := profiles.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr("resource", "R1")
	rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty()
	return profiles
}
