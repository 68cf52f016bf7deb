// Package collector is the OpenTelemetry Collector processor "symfilter". It names the functions,
// files and lines of raw addresses in log records, spans and profiles.
//
// A record is filtered in the context of its process: the modules and maps that earlier records
// with the same key have listed. README.md describes the options and the order of a pipeline's
// stages.
//
//	factory.go, config.go     the component: its options, and their mistakes
//	life.go                   the start and the end of a processor, and its batches
//	processor.go              the processor of logs; a batch has one worker
//	worker.go, keys.go        sorts the texts of a batch by process
//	filter.go                 filters the texts of a process, together if they may have raw frames
//	traces.go                 which line of the output belongs to which of several records
//	contexts.go, saved.go     the contexts of processes, bounded; their copies in a storage
//	symbols.go, telemetry.go  shared by the pipelines: debug files, storage, metrics
//	spans.go                  attributes of spans, as records
//	profiles.go, locations.go the locations of profiles; named.go keeps answers across batches
//	frames.go, late.go        structured attributes; records for debug files that arrive late
package collector
