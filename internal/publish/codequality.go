package publish

import (
	"io"

	"github.com/symfilter/symfilter/internal/findings"
)

// CodeQuality prints the findings as GitLab's Code Quality report, a subset of Code Climate's
// format. It prints exactly the members that GitLab reads. GitLab shows entries with equal
// fingerprints as one entry. CodeQuality fails only if w does.
func CodeQuality(w io.Writer, r *Result) error {
	j := jsonWriter{w: w}
	j.open('[')
	entry := func(description, check, fingerprint, severity, file string, line uint32) {
		j.line()
		j.open('{')
		j.member("description", description)
		j.member("check_name", check)
		j.member("fingerprint", fingerprint)
		j.member("severity", severity)
		j.object("location")
		j.member("path", file)
		j.object("lines")
		j.number("begin", uint64(line))
		for range 3 {
			j.close('}')
		}
	}
	for _, g := range r.gaps() {
		file, _ := r.path(g.file)
		entry(g.text, ruleID(g.tool, incompleteKind), g.fingerprint(), "minor", file, 1)
	}
	for _, x := range r.All() {
		p := r.place(x)
		file, _ := r.path(p.file)
		entry(sentence(x), ruleID(x.Tool, x.Kind), x.ID(), qualitySeverity(x), file, p.line)
	}
	if j.comma {
		j.raw('\n')
	}
	j.close(']')
	j.raw('\n')
	return j.flush()
}

func qualitySeverity(x *findings.Finding) string {
	switch c := classIn(x); {
	case c.severity == note:
		return "info"
	case c.severity == warning:
		return "minor"
	case c.memory:
		return "critical"
	}
	return "major"
}
