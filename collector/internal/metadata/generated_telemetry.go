// This file is written by hand in the form of mdatagen's output: the program is not published for
// this version.

package metadata

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	"go.opentelemetry.io/otel/trace"
)

// Meter returns the meter of the component.
func Meter(settings component.TelemetrySettings) metric.Meter {
	return settings.MeterProvider.Meter(ScopeName)
}

// Tracer returns the tracer of the component.
func Tracer(settings component.TelemetrySettings) trace.Tracer {
	return settings.TracerProvider.Tracer(ScopeName)
}

// TelemetryBuilder has the instruments of the metrics in metadata.yaml.
type TelemetryBuilder struct {
	meter         metric.Meter
	mu            sync.Mutex
	registrations []metric.Registration

	ProcessorSymfilterCacheRequests      metric.Int64ObservableCounter
	ProcessorSymfilterContextBytes       metric.Int64ObservableUpDownCounter
	ProcessorSymfilterContexts           metric.Int64ObservableUpDownCounter
	ProcessorSymfilterContextsEvicted    metric.Int64ObservableCounter
	ProcessorSymfilterDebuginfodReceived metric.Int64ObservableCounter
	ProcessorSymfilterDebuginfodRequests metric.Int64ObservableCounter
	ProcessorSymfilterElements           metric.Int64ObservableCounter
	ProcessorSymfilterFilteredRecords    metric.Int64ObservableCounter
	ProcessorSymfilterLateRecords        metric.Int64ObservableCounter
	ProcessorSymfilterLocations          metric.Int64ObservableCounter
	ProcessorSymfilterLookupDuration     metric.Float64Histogram
	ProcessorSymfilterMemory             metric.Int64ObservableUpDownCounter
	ProcessorSymfilterMemoryLimit        metric.Int64ObservableUpDownCounter
	ProcessorSymfilterModules            metric.Int64ObservableUpDownCounter
	ProcessorSymfilterStorageErrors      metric.Int64ObservableCounter
}

// RegisterProcessorSymfilterCacheRequestsCallback sets the callback of
// ProcessorSymfilterCacheRequests.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterCacheRequestsCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterCacheRequests, cb)
}

// RegisterProcessorSymfilterContextBytesCallback sets the callback of
// ProcessorSymfilterContextBytes.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterContextBytesCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterContextBytes, cb)
}

// RegisterProcessorSymfilterContextsCallback sets the callback of ProcessorSymfilterContexts.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterContextsCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterContexts, cb)
}

// RegisterProcessorSymfilterContextsEvictedCallback sets the callback of
// ProcessorSymfilterContextsEvicted.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterContextsEvictedCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterContextsEvicted, cb)
}

// RegisterProcessorSymfilterDebuginfodReceivedCallback sets the callback of
// ProcessorSymfilterDebuginfodReceived.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterDebuginfodReceivedCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterDebuginfodReceived, cb)
}

// RegisterProcessorSymfilterDebuginfodRequestsCallback sets the callback of
// ProcessorSymfilterDebuginfodRequests.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterDebuginfodRequestsCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterDebuginfodRequests, cb)
}

// RegisterProcessorSymfilterLocationsCallback sets the callback of ProcessorSymfilterLocations.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterLocationsCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterLocations, cb)
}

// RegisterProcessorSymfilterElementsCallback sets the callback of ProcessorSymfilterElements.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterElementsCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterElements, cb)
}

// RegisterProcessorSymfilterFilteredRecordsCallback sets the callback of
// ProcessorSymfilterFilteredRecords.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterFilteredRecordsCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterFilteredRecords, cb)
}

// RegisterProcessorSymfilterLateRecordsCallback sets the callback of ProcessorSymfilterLateRecords.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterLateRecordsCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterLateRecords, cb)
}

// RegisterProcessorSymfilterMemoryCallback sets the callback of ProcessorSymfilterMemory.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterMemoryCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterMemory, cb)
}

// RegisterProcessorSymfilterMemoryLimitCallback sets the callback of ProcessorSymfilterMemoryLimit.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterMemoryLimitCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterMemoryLimit, cb)
}

// RegisterProcessorSymfilterModulesCallback sets the callback of ProcessorSymfilterModules.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterModulesCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterModules, cb)
}

// RegisterProcessorSymfilterStorageErrorsCallback sets the callback of
// ProcessorSymfilterStorageErrors.
func (builder *TelemetryBuilder) RegisterProcessorSymfilterStorageErrorsCallback(cb metric.Int64Callback) error {
	return builder.register(builder.ProcessorSymfilterStorageErrors, cb)
}

func (builder *TelemetryBuilder) register(inst metric.Int64Observable, cb metric.Int64Callback) error {
	reg, err := builder.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		return cb(ctx, &observerInt64{inst: inst, obs: o})
	}, inst)
	if err != nil {
		return err
	}
	builder.mu.Lock()
	defer builder.mu.Unlock()
	builder.registrations = append(builder.registrations, reg)
	return nil
}

type observerInt64 struct {
	embedded.Int64Observer
	inst metric.Int64Observable
	obs  metric.Observer
}

func (oi *observerInt64) Observe(value int64, opts ...metric.ObserveOption) {
	oi.obs.ObserveInt64(oi.inst, value, opts...)
}

// Shutdown removes all callbacks.
func (builder *TelemetryBuilder) Shutdown() {
	builder.mu.Lock()
	defer builder.mu.Unlock()
	for _, reg := range builder.registrations {
		reg.Unregister()
	}
	builder.registrations = nil
}

// NewTelemetryBuilder returns the instruments of the component's metrics.
func NewTelemetryBuilder(settings component.TelemetrySettings) (*TelemetryBuilder, error) {
	builder := TelemetryBuilder{meter: Meter(settings)}
	var err, errs error
	builder.ProcessorSymfilterCacheRequests, err = builder.meter.Int64ObservableCounter(
		"otelcol_processor_symfilter_cache_requests",
		metric.WithDescription("Lookups in the cache of rendered frames, by result [Development]"),
		metric.WithUnit("{request}"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterContextBytes, err = builder.meter.Int64ObservableUpDownCounter(
		"otelcol_processor_symfilter_context_bytes",
		metric.WithDescription("Approximate memory of all contexts [Development]"),
		metric.WithUnit("By"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterContexts, err = builder.meter.Int64ObservableUpDownCounter(
		"otelcol_processor_symfilter_contexts",
		metric.WithDescription("Processes whose modules and maps are remembered [Development]"),
		metric.WithUnit("{context}"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterContextsEvicted, err = builder.meter.Int64ObservableCounter(
		"otelcol_processor_symfilter_contexts_evicted",
		metric.WithDescription("Contexts that were dropped, by reason [Development]"),
		metric.WithUnit("{context}"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterDebuginfodReceived, err = builder.meter.Int64ObservableCounter(
		"otelcol_processor_symfilter_debuginfod_received",
		metric.WithDescription("Bytes of answers from debuginfod servers, by server [Development]"),
		metric.WithUnit("By"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterDebuginfodRequests, err = builder.meter.Int64ObservableCounter(
		"otelcol_processor_symfilter_debuginfod_requests",
		metric.WithDescription("Requests to debuginfod servers that have ended, by server and outcome [Development]"),
		metric.WithUnit("{request}"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterElements, err = builder.meter.Int64ObservableCounter(
		"otelcol_processor_symfilter_elements",
		metric.WithDescription("Addresses that were looked up, by tag of the element and result [Development]"),
		metric.WithUnit("{element}"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterFilteredRecords, err = builder.meter.Int64ObservableCounter(
		"otelcol_processor_symfilter_filtered_records",
		metric.WithDescription("Records whose text was searched for elements and frames [Development]"),
		metric.WithUnit("{record}"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterLateRecords, err = builder.meter.Int64ObservableCounter(
		"otelcol_processor_symfilter_late_records",
		metric.WithDescription("Records with names for frames that earlier records left unresolved [Development]"),
		metric.WithUnit("{record}"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterLocations, err = builder.meter.Int64ObservableCounter(
		"otelcol_processor_symfilter_locations",
		metric.WithDescription("Profile locations received without a function, by result [Development]"),
		metric.WithUnit("{location}"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterLookupDuration, err = builder.meter.Float64Histogram(
		"otelcol_processor_symfilter_lookup_duration",
		metric.WithDescription("Time of uncached lookups in debug files, including waits for the files [Development]"),
		metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(1e-05, 0.0001, 0.001, 0.01, 0.1, 1, 10, 60),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterMemory, err = builder.meter.Int64ObservableUpDownCounter(
		"otelcol_processor_symfilter_memory",
		metric.WithDescription("Memory of debug files and rendered frames, by use [Development]"),
		metric.WithUnit("By"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterMemoryLimit, err = builder.meter.Int64ObservableUpDownCounter(
		"otelcol_processor_symfilter_memory_limit",
		metric.WithDescription("Limit for the memory of debug files and rendered frames [Development]"),
		metric.WithUnit("By"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterModules, err = builder.meter.Int64ObservableUpDownCounter(
		"otelcol_processor_symfilter_modules",
		metric.WithDescription("Modules that logs have named, by state [Development]"),
		metric.WithUnit("{module}"),
	)
	errs = errors.Join(errs, err)
	builder.ProcessorSymfilterStorageErrors, err = builder.meter.Int64ObservableCounter(
		"otelcol_processor_symfilter_storage_errors",
		metric.WithDescription("Failed operations of the storage extension [Development]"),
		metric.WithUnit("{error}"),
	)
	errs = errors.Join(errs, err)
	return &builder, errs
}
