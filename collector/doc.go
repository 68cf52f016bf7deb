// Package collector is the OpenTelemetry Collector processor "symfilter", which names the functions,
// files and lines of raw addresses in log records.
//
// A record is filtered in the context of its process: the modules and maps that earlier records with
// the same key have listed. README.md describes the options and the order of a pipeline's stages.
package collector
