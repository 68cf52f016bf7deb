package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
)

// incompleteKind is the kind of messages about missing findings, for example of a truncated report.
// Without such a message, an empty list would look complete.
const incompleteKind = "Incomplete"

// maxGaps bounds the processes or inputs that a message names.
const maxGaps = 8

// A gap describes a missing part of a tool's findings.
type gap struct {
	what string // kind of gap, which distinguishes gaps of one tool and file in the fingerprint
	tool string
	text string // sentence without a full stop
	file string // name of the report or the program
}

func cutOff(p *findings.Process) string {
	return "The report of " + describe(p) + " is cut off: errors after its end are missing"
}

func noReport(inputs []string) string {
	names := make([]string, len(inputs))
	for i, name := range inputs {
		names[i] = visible(name, maxName)
	}
	return "There is no report in " + strings.Join(names, ", ")
}

// gaps returns a gap for each tool with truncated reports. One more gap is for inputs without a
// report, and one for findings that did not fit in memory.
func (r *Result) gaps() (all []gap) {
	type missing struct {
		processes int
		first     []*findings.Process
	}
	byTool := make(map[string]*missing)
	var tools []string
	processes := r.Processes()
	for i := range processes {
		p := &processes[i]
		if p.Complete {
			continue
		}
		m := byTool[p.Tool]
		if m == nil {
			if len(tools) == maxTools {
				continue
			}
			m = new(missing)
			byTool[p.Tool] = m
			tools = append(tools, p.Tool)
		}
		if m.processes++; m.processes <= maxGaps {
			m.first = append(m.first, p)
		}
	}
	for _, tool := range tools {
		m := byTool[tool]
		g := gap{what: "incomplete", tool: tool, file: m.first[0].Input}
		if len(m.first[0].Command) > 0 && m.first[0].Command[0] != "" {
			g.file = m.first[0].Command[0]
		}
		if m.processes == 1 {
			g.text = cutOff(m.first[0])
		} else {
			names := make([]string, len(m.first))
			for i, p := range m.first {
				names[i] = describe(p)
			}
			g.text = plural(m.processes, "report") + " are cut off, so errors after their ends are missing: " + strings.Join(names, ", ")
			if n := m.processes - len(m.first); n > 0 {
				g.text += ", and " + plural(n, "other")
			}
		}
		all = append(all, g)
	}
	if n := len(r.Empty); n > 0 {
		g := gap{what: "empty", text: noReport(r.Empty[:min(n, maxGaps)]), file: r.Empty[0]}
		if n > maxGaps {
			g.text += ", and " + plural(n-maxGaps, "other")
		}
		all = append(all, g)
	}
	if r.Left > 0 {
		all = append(all, gap{what: "left out", text: leftOut(r.Left), file: "unknown"})
	}
	for i := range all {
		if all[i].file == "" {
			all[i].file = "unknown"
		}
	}
	return all
}

func leftOut(n int64) string {
	return plural(n, "finding") + " left out: the memory that --max-memory allows is used up"
}

// fingerprint returns 32 hexadecimal digits. Equal gaps of the same tool and file have the same
// digits.
func (g *gap) fingerprint() string {
	h := sha256.Sum256([]byte(g.what + "\x00" + g.tool + "\x00" + g.file))
	return hex.EncodeToString(h[:16])
}
