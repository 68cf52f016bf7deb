// Package metadata holds the component type, the stability and the metrics that metadata.yaml
// lists.
package metadata

import "go.opentelemetry.io/collector/component"

var (
	Type      = component.MustNewType("symfilter")
	ScopeName = "github.com/symfilter/symfilter/collector"
)

const (
	LogsStability     = component.StabilityLevelDevelopment
	TracesStability   = component.StabilityLevelDevelopment
	ProfilesStability = component.StabilityLevelDevelopment
)
