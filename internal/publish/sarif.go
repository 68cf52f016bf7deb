package publish

import (
	"io"

	"github.com/symfilter/symfilter/internal/findings"
)

// Limits of GitHub's code scanning, above which it refuses a file or omits a part.
const (
	maxResults   = 25_000 // results of a run
	shownResults = 5_000  // results of a run that GitHub shows
	// locations in the flow of a result; GitHub accepts 10,000, and shows this many
	maxFlowLocations = 1_000
	// related locations of a result; GitHub accepts 1,000, and shows this many
	maxRelated = 100
	// bytes of the file after gzip; GitHub accepts 10 MB. The margin is for input that the
	// compressor has taken but not yet counted
	maxCompressed = 9_500_000
	maxNotices    = 100 // messages of a run about missing parts
	maxDetails    = 3   // lines of details in a result's message, besides its stacks
)

// SARIFOptions select optional members of SARIF. The zero value is usable.
type SARIFOptions struct {
	// Category distinguishes files that are uploaded for the same tool and commit. GitHub replaces
	// the results of an earlier file with the same category.
	Category string

	// LineHash replaces the fingerprint of the stack by the fingerprint that GitHub's upload action
	// computes from the source line. It needs Result.Text.
	LineHash bool
}

// SARIF prints the findings in the Static Analysis Results Interchange Format, version 2.1.0,
// within the limits of GitHub's code scanning. Each tool has a run, and each result one location.
// Names of files below the root of the repository are relative. Faults come first, then warnings
// and notes. A run reports how many findings were left out. SARIF fails only if w does.
//
// Findings that exist only in the baseline are not printed, since GitHub treats each result as
// current.
func SARIF(w io.Writer, r *Result) error {
	m := &meter{w: w}
	s := &sarif{Result: r, meter: m, uris: make(map[string]string), frames: make(map[*findings.TraceFrame]printedFrame)}
	s.w = m
	s.open('{')
	s.member("$schema", "https://json.schemastore.org/sarif-2.1.0.json")
	s.member("version", "2.1.0")
	s.array("runs")
	for _, run := range s.runs() {
		s.line()
		s.run(run)
	}
	s.close(']')
	s.close('}')
	s.raw('\n')
	return s.flush()
}

type sarif struct {
	jsonWriter
	*Result
	meter *meter
	ascii asciiLines
	uris  map[string]string // references to files so far, by name; at most maxURIs

	frames     map[*findings.TraceFrame]printedFrame // JSON of frames so far
	frameBytes int                                   // bytes of the texts in frames
}

// maxURIs bounds the remembered references to files; a large program has about 10,000 files.
const maxURIs = 16 << 10

type sarifRun struct {
	tool    tool
	source  findings.Source
	all     []*findings.Finding
	left    int // findings left out because of GitHub's limits
	gaps    []gap
	notices []string
	rules   map[string]int // index of each rule by its ID
	hashes  map[*findings.Finding]string
}

// runs returns a run for each tool that ran, at most maxTools. A tool without findings has a run,
// too: otherwise GitHub would keep its earlier findings.
func (s *sarif) runs() (runs []*sarifRun) {
	byTool := make(map[string]*sarifRun)
	left := 0
	of := func(id string, source findings.Source) *sarifRun {
		run := byTool[id]
		if run == nil && len(runs) < maxTools {
			run = &sarifRun{tool: toolOf(id), source: source, rules: make(map[string]int)}
			byTool[id] = run
			runs = append(runs, run)
		}
		return run
	}
	for _, x := range s.All() {
		if run := of(x.Tool, x.Source); run != nil {
			run.all = append(run.all, x)
		} else {
			left++
		}
	}
	processes := s.Processes()
	for i := range processes {
		if processes[i].Tool != "" {
			of(processes[i].Tool, processes[i].Source)
		}
	}
	if len(runs) == 0 {
		of("", "")
	}
	for _, g := range s.gaps() {
		run := byTool[g.tool]
		if run == nil {
			run = runs[0]
		}
		run.gaps = append(run.gaps, g)
	}
	for _, run := range runs {
		byWeight(run.all)
		if n := maxResults - len(run.gaps); len(run.all) > n {
			run.left = len(run.all) - n
			run.all = run.all[:n]
		}
		for _, g := range run.gaps {
			run.notices = append(run.notices, g.text)
		}
		if s.SARIF.LineHash {
			run.hashes = s.lineHashes(run.all)
		}
	}
	if left > 0 {
		runs[0].notices = append(runs[0].notices, plural(left, "finding")+" left out: GitHub accepts at most 20 tools in a file")
	}
	return runs
}

func (s *sarif) run(run *sarifRun) {
	s.open('{')
	s.object("tool")
	s.object("driver")
	s.member("name", run.tool.name)
	if run.tool.uri != "" {
		s.member("informationUri", run.tool.uri)
	}
	s.rules(run)
	s.close('}')
	s.close('}')
	s.object("conversion")
	s.object("tool")
	s.object("driver")
	s.member("name", "symfilter")
	if s.Version != "" {
		s.member("version", visible(s.Version, maxName))
	}
	s.close('}')
	s.close('}')
	s.close('}')
	s.object("automationDetails")
	s.member("id", s.category(run))
	s.close('}')
	s.member("columnKind", "utf16CodeUnits")
	s.array("results")
	for i := range run.gaps {
		s.line()
		s.gapResult(run, &run.gaps[i])
	}
	for i, x := range run.all {
		if i%flushEach == 0 {
			s.flush()
			if s.meter.full() {
				run.left += len(run.all) - i
				break
			}
		}
		s.line()
		s.result(run, x)
	}
	s.close(']')
	s.invocation(run)
	s.close('}')
}

// flushEach is the number of results between two checks of the file's size. A result usually takes
// 4 kB, and at most about 3 MB. Compression makes it about a hundred times smaller.
const flushEach = 16

// category returns the ID of a run. GitHub uses the text before the last slash as the category.
func (s *sarif) category(run *sarifRun) string {
	id := identifier(string(run.source), "symfilter") + "/" + identifier(run.tool.id, "symfilter") + "/"
	if s.SARIF.Category != "" {
		id += visible(s.SARIF.Category, maxName) + "/"
	}
	return id
}

func (s *sarif) rules(run *sarifRun) {
	s.array("rules")
	rule := func(kind string, c *class) {
		id := ruleID(run.tool.id, kind)
		if _, ok := run.rules[id]; ok {
			return
		}
		run.rules[id] = len(run.rules)
		s.line()
		s.open('{')
		s.member("id", id)
		short := visible(kind, maxName)
		if short == "" {
			short = "Error"
		}
		s.message("shortDescription", ended(run.tool.name+": "+short, maxAbout))
		s.message("fullDescription", ended(c.about, maxAbout))
		help := c.about + " Reported by " + run.tool.name
		if run.tool.uri != "" {
			help += "; see " + run.tool.uri
		}
		s.message("help", ended(help, maxAbout))
		if run.tool.uri != "" {
			s.member("helpUri", run.tool.uri)
		}
		s.object("defaultConfiguration")
		s.member("level", c.severity.level())
		s.close('}')
		s.object("properties")
		s.member("precision", c.precision())
		s.member("problem.severity", [...]string{"recommendation", "warning", "error"}[c.severity])
		s.tags(tagsOf(c))
		s.close('}')
		s.close('}')
	}
	if len(run.gaps) > 0 {
		rule(incompleteKind, &incomplete)
	}
	for _, x := range run.all {
		rule(x.Kind, classIn(x))
	}
	s.close(']')
}

func (s *sarif) tags(tags []string) {
	s.array("tags")
	for _, t := range tags {
		s.text(t)
	}
	s.close(']')
}

// invocation prints whether the findings of the run are complete, and messages about missing
// findings.
func (s *sarif) invocation(run *sarifRun) {
	notices := run.notices
	if run.left > 0 {
		notices = append(notices, plural(run.left, "finding")+" left out: GitHub accepts at most 25,000 in a run, and files of at most 10 MB after compression")
	}
	complete := len(notices) == 0
	if n := len(run.all) - shownResults; n > 0 && run.left == 0 {
		notices = append(notices, plural(n, "finding")+" of the run are not shown by GitHub, which shows the first 5,000")
	}
	s.array("invocations")
	s.open('{')
	s.truth("executionSuccessful", complete)
	s.notifications(notices)
	s.close('}')
	s.close(']')
}

func (s *sarif) notifications(notices []string) {
	if len(notices) == 0 {
		return
	}
	s.array("toolExecutionNotifications")
	for _, n := range notices[:min(len(notices), maxNotices)] {
		s.open('{')
		s.member("level", "warning")
		s.message("message", ended(n, 8*maxAbout))
		s.close('}')
	}
	s.close(']')
}
