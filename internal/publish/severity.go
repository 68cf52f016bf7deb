package publish

import (
	"strings"

	"github.com/symfilter/symfilter/report"
)

// A severity is how bad a finding is.
type severity uint8

const (
	note    severity = iota // no fault by itself: memory that is still reachable
	warning                 // may be a fault, or does no harm at once
	failure                 // a fault
)

// severityOf returns how bad a finding is. Possible leaks and races are warnings: they depend on
// what a tool cannot see.
func severityOf(x *report.Finding) severity {
	switch x.Kind {
	case "Leak_StillReachable", "Leak_IndirectlyLost":
		return note
	case "Leak_PossiblyLost", "Race", "data-race", "LockOrder", "ConflictingAccess":
		return warning
	}
	return failure
}

// isMemoryError reports whether a finding is an access to memory that the program does not own.
func isMemoryError(x *report.Finding) bool {
	switch {
	case severityOf(x) != failure:
		return false
	case strings.HasPrefix(x.Kind, "Leak_"), strings.HasPrefix(x.Kind, "Uninit"), strings.Contains(x.Kind, "leak"):
		return false
	case x.Kind == "SyscallParam", x.Kind == "use-of-uninitialized-value":
		return false
	}
	return true
}
