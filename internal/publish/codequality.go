package publish

import (
	"encoding/json"
	"io"

	"github.com/symfilter/symfilter/report"
)

// A qualityIssue is an entry of a Code Quality report, a subset of Code Climate's format: GitLab
// reads these members and no others.
type qualityIssue struct {
	Description string          `json:"description"`
	CheckName   string          `json:"check_name"`
	Fingerprint string          `json:"fingerprint"` // entries with equal ones collapse
	Severity    string          `json:"severity"`
	Location    qualityLocation `json:"location"`
}

type qualityLocation struct {
	Path  string       `json:"path"`
	Lines qualityLines `json:"lines"`
}

type qualityLines struct {
	Begin uint32 `json:"begin"`
}

// CodeQuality prints the findings as GitLab's Code Quality report. Its errors are those of w.
func CodeQuality(w io.Writer, r *Result) error {
	issues := make([]qualityIssue, 0, len(r.All()))
	for _, x := range r.All() {
		file, line := r.place(x)
		issues = append(issues, qualityIssue{
			Description: sentence(x),
			CheckName:   ruleOf(x),
			Fingerprint: x.ID(),
			Severity:    qualitySeverity(x),
			Location:    qualityLocation{file, qualityLines{line}},
		})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(issues)
}

// ruleOf returns the name of the rule that a finding breaks: memcheck/InvalidRead.
func ruleOf(x *report.Finding) string { return x.Tool + "/" + x.Kind }

// qualitySeverity returns the severity of a finding in GitLab's words.
func qualitySeverity(x *report.Finding) string {
	switch severityOf(x) {
	case note:
		return "info"
	case warning:
		return "minor"
	}
	if isMemoryError(x) {
		return "critical"
	}
	return "major"
}
