package collector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/symfilter/symfilter/internal/marks"
)

func (f *factory) createTraces(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	p := newLogsProcessor(set, cfg.(*Config), nil, f)
	return processorhelper.NewTraces(ctx, set, cfg, next, p.processTraces,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		processorhelper.WithStart(p.start),
		processorhelper.WithShutdown(p.shutdown))
}

// processTraces filters the attributes of spans and their events, by the rules for attributes of
// log records. It makes a record for each span or event with a filtered attribute that may have a
// frame or an element. The rest of the spans is unchanged.
func (p *logsProcessor) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	var owners []pcommon.Map // attributes of the span or event of each record
	ld := plog.NewLogs()
	for _, rs := range td.ResourceSpans().All() {
		var records plog.LogRecordSlice // records of the resource; made for its first record
		made := false
		add := func(attributes, of pcommon.Map) {
			if !p.hasMark(attributes) {
				return
			}
			if !made {
				rl := ld.ResourceLogs().AppendEmpty()
				rs.Resource().CopyTo(rl.Resource())
				records, made = rl.ScopeLogs().AppendEmpty().LogRecords(), true
			}
			to := records.AppendEmpty().Attributes()
			attributes.CopyTo(to)
			for _, key := range p.cfg.Key { // for an event, the span may have the process
				if v, ok := of.Get(key); ok {
					if _, has := to.Get(key); !has {
						v.CopyTo(to.PutEmpty(key))
					}
				}
			}
			owners = append(owners, attributes)
		}
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				add(span.Attributes(), span.Attributes())
				for _, event := range span.Events().All() {
					add(event.Attributes(), span.Attributes())
				}
			}
		}
	}
	if len(owners) == 0 {
		return td, nil
	}
	if _, err := p.processLogs(ctx, ld); err != nil {
		return td, err
	}
	for _, rl := range ld.ResourceLogs().All() {
		for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
			p.takeBack(owners[0], lr.Attributes())
			owners = owners[1:]
		}
	}
	return td, nil
}

// hasMark reports whether a filtered attribute may have a frame or an element.
func (p *logsProcessor) hasMark(attributes pcommon.Map) bool {
	if attributes.Len() == 0 {
		return false
	}
	for _, name := range p.cfg.Attributes {
		if v, ok := attributes.Get(name); ok && v.Type() == pcommon.ValueTypeStr {
			b := bytesOf(v.Str())
			if at, _ := marks.Find(b); at < len(b) {
				return true
			}
		}
	}
	return false
}

// takeBack copies the attributes of a record to its span or event: the filtered attributes, and the
// attributes with results.
func (p *logsProcessor) takeBack(to, from pcommon.Map) {
	for _, name := range p.cfg.Attributes {
		if v, ok := from.Get(name); ok && v.Type() == pcommon.ValueTypeStr {
			// an event may lack an attribute of Config.Key that its record has copied from the span
			if old, ok := to.Get(name); ok && old.Type() == pcommon.ValueTypeStr && old.Str() != v.Str() {
				old.SetStr(v.Str())
			}
		}
	}
	for _, name := range [...]string{unresolvedAttribute, framesAttribute} {
		if v, ok := from.Get(name); ok {
			v.MoveTo(to.PutEmpty(name))
		}
	}
}
