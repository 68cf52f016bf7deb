package collector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/symfilter/symfilter/collector/internal/metadata"
)

// NewFactory returns the factory of the processor. Each pipeline has a separate processor. The
// processors from one configuration share debug files, metrics and storage.
func NewFactory() xprocessor.Factory {
	f := &factory{all: make(map[*Config]*shared)}
	return xprocessor.NewFactory(metadata.Type, createDefaultConfig,
		xprocessor.WithLogs(f.createLogs, metadata.LogsStability),
		xprocessor.WithTraces(f.createTraces, metadata.TracesStability),
		xprocessor.WithProfiles(f.createProfiles, metadata.ProfilesStability))
}

func (f *factory) createLogs(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	p := newLogsProcessor(set, cfg.(*Config), next, f)
	return processorhelper.NewLogs(ctx, set, cfg, next, p.processLogs,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		processorhelper.WithStart(p.start),
		processorhelper.WithShutdown(p.shutdown))
}
