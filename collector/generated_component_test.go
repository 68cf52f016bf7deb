// In the shape of mdatagen's, by hand.

package collector

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor/processortest"

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
	t.Run("logs-shutdown", func(t *testing.T) {
		c, err := factory.CreateLogs(context.Background(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("logs-lifecycle", func(t *testing.T) {
		c, err := factory.CreateLogs(context.Background(), processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(context.Background(), componenttest.NewNopHost()); err != nil {
			t.Fatal(err)
		}
		logs := generateLifecycleTestLogs()
		if !c.Capabilities().MutatesData {
			logs.MarkReadOnly()
		}
		if err := c.ConsumeLogs(context.Background(), logs); err != nil {
			t.Error(err)
		}
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
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
