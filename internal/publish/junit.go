package publish

import (
	"bufio"
	"cmp"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
)

// JUnitOptions select the form of JUnit's XML. The zero value is usable.
type JUnitOptions struct {
	// ByFinding makes a test case of each finding, instead of each process.
	ByFinding bool

	// Strict omits elements and attributes that the schema of Jenkins' xUnit plugin (junit-10.xsd)
	// lacks.
	Strict bool
}

// Sizes of a JUnit file, in bytes. Above maxStackBytes, findings have no stacks. Above
// maxListBytes, they are only counted. GitLab accepts files up to 30 MB.
const (
	maxStackBytes = 20 << 20
	maxListBytes  = 24 << 20
)

// JUnit prints the findings in the XML that build servers read as test results. Each report is a
// suite, and each of its processes a case. A case with findings fails, and other cases pass: a
// fixed finding shows as a passed test. JUnit fails only if w does.
func JUnit(w io.Writer, r *Result) error {
	j := &junit{Result: r}
	j.w = bufio.NewWriterSize(io.MultiWriter(w, &j.sent), bufferSize)
	j.group()
	j.print()
	return j.w.Flush()
}

type junit struct {
	*Result
	w    *bufio.Writer
	sent countBytes // number of bytes that w has written

	suites []*suite
	texts  map[*findings.Finding]string // texts of findings in several processes
	kept   int                          // bytes of texts
	names  map[string]int               // uses of each case name
	cut    int                          // findings printed without stacks, or only counted
}

type suite struct {
	name     string
	cases    []testCase
	failures int
	errors   int
}

// A testCase is a process, or with JUnitOptions.ByFinding a finding.
type testCase struct {
	process *findings.Process
	all     []*findings.Finding // findings that make the case fail
	known   int                 // findings that do not fail the build
	single  bool                // the case is a finding, not a process
}

// size returns the bytes printed so far, including buffered ones.
func (j *junit) size() int64 { return int64(j.sent) + int64(j.w.Buffered()) }

// group makes a suite of each report and a case of each process, or of each finding with ByFinding.
func (j *junit) group() {
	processes := j.Processes()
	all := make([][]*findings.Finding, len(processes))
	known := make([]int, len(processes))
	for _, x := range j.All() {
		for i, o := range x.Seen {
			switch {
			case o.Process < 0 || o.Process >= len(processes), i > 0 && j.JUnit.ByFinding:
			case !j.fails(x):
				known[o.Process]++
			default:
				all[o.Process] = append(all[o.Process], x)
			}
		}
	}
	byInput := make(map[string]*suite)
	for i := range processes {
		p := &processes[i]
		s := byInput[p.Input]
		if s == nil {
			s = &suite{name: p.Input}
			byInput[p.Input] = s
			j.suites = append(j.suites, s)
		}
		s.add(p, all[i], known[i], j.JUnit.ByFinding)
	}
}

func (s *suite) add(p *findings.Process, all []*findings.Finding, known int, byFinding bool) {
	if byFinding {
		for _, x := range all {
			s.cases = append(s.cases, testCase{process: p, all: []*findings.Finding{x}, single: true})
			s.failures++
		}
		if len(all) > 0 && p.Complete {
			return
		}
		all = nil
	}
	s.cases = append(s.cases, testCase{process: p, all: all, known: known})
	switch {
	case len(all) > 0:
		s.failures++
	case !p.Complete:
		s.errors++
	}
}

func (j *junit) print() {
	var tests, failures, errors int
	for _, s := range j.suites {
		tests += len(s.cases)
		failures += s.failures
		errors += s.errors
	}
	tests += len(j.Empty)
	errors += len(j.Empty)
	if j.Left > 0 {
		tests++
		errors++
	}
	j.names, j.texts = make(map[string]int), make(map[*findings.Finding]string)
	j.raw(`<?xml version="1.0" encoding="UTF-8"?>` + "\n<testsuites")
	j.attribute("name", "symfilter")
	j.counts(tests, failures, errors)
	j.raw(">\n")
	for _, s := range j.suites {
		j.suite(s)
	}
	for _, input := range j.Empty {
		j.gap(input, input, noReport([]string{input}))
	}
	if j.Left > 0 {
		j.gap("symfilter", "findings left out", leftOut(j.Left))
	}
	j.raw("</testsuites>\n")
}

// gap prints a suite for missing findings. Its only case has an error.
func (j *junit) gap(suite, name, text string) {
	j.raw("<testsuite")
	j.attribute("name", cmp.Or(visible(suite, maxAbout), "report"))
	j.counts(1, 0, 1)
	j.raw(">\n<testcase")
	j.attribute("name", j.unique("symfilter", cmp.Or(visible(name, maxName), "report")))
	j.attribute("classname", "symfilter")
	j.raw(">")
	j.problem("error", incompleteKind, text+".")
	j.raw("</testcase>\n</testsuite>\n")
}

// counts prints the attributes with the numbers of cases.
func (j *junit) counts(tests, failures, errors int) {
	j.attribute("tests", strconv.Itoa(tests))
	j.attribute("failures", strconv.Itoa(failures))
	j.attribute("errors", strconv.Itoa(errors))
}

func (j *junit) suite(s *suite) {
	cut := j.cut
	j.raw("<testsuite")
	j.attribute("name", cmp.Or(visible(s.name, maxAbout), "report"))
	j.counts(len(s.cases), s.failures, s.errors)
	j.raw(">\n")
	for i := range s.cases {
		j.testCase(&s.cases[i])
	}
	if n := j.cut - cut; n > 0 {
		j.raw("<system-err>")
		j.text(plural(n, "finding") + " shortened, or only counted: GitLab does not read files larger than 30 MB\n")
		j.raw("</system-err>\n")
	}
	j.raw("</testsuite>\n")
}

func (j *junit) testCase(c *testCase) {
	class := cmp.Or(identifier(c.process.Tool, ""), "symfilter")
	name := commandOf(c.process)
	if c.single {
		x := c.all[0]
		class = cmp.Or(identifier(x.Tool, ""), "symfilter")
		name = cmp.Or(visible(x.Kind, maxName), "Error")
		if f := x.Place(); f != nil && f.Named() {
			name = functionOf(f)
		}
		name += " " + x.Fingerprint[:min(len(x.Fingerprint), 8)]
	}
	j.raw("<testcase")
	j.attribute("name", j.unique(class, name))
	j.attribute("classname", class)
	if len(c.all) > 0 && !j.JUnit.Strict {
		if p := j.place(c.all[0]); p.known {
			file, _ := j.path(p.file)
			j.attribute("file", visible(file, maxURI))
		}
	}
	if len(c.all) == 0 && c.process.Complete && c.known == 0 {
		j.raw("/>\n")
		return
	}
	j.raw(">")
	switch {
	case len(c.all) > 0:
		j.failure(c)
	case !c.process.Complete:
		j.problem("error", incompleteKind, cutOff(c.process)+".")
	}
	if c.known > 0 {
		j.raw("<system-out>")
		j.text(plural(c.known, "finding") + " accepted by the baseline or the gate\n")
		j.raw("</system-out>")
	}
	j.raw("</testcase>\n")
}

// unique returns name, with a number if a case of this class already has the name: GitLab counts
// only the first.
func (j *junit) unique(class, name string) string {
	key := class + "\x00" + name
	j.names[key]++
	if n := j.names[key]; n > 1 {
		return name + " (" + strconv.Itoa(n) + ")"
	}
	return name
}

// commandOf returns the command of a process, without the folder of the program. It returns the
// name of the report for an unknown command.
func commandOf(p *findings.Process) string {
	if len(p.Command) == 0 || p.Command[0] == "" {
		return cmp.Or(visible(path.Base(p.Input), maxName), "process")
	}
	var b strings.Builder
	b.WriteString(path.Base(p.Command[0]))
	for _, a := range p.Command[1:] {
		if b.Len() > 4*maxName {
			break
		}
		b.WriteByte(' ')
		b.WriteString(a)
	}
	return visible(b.String(), maxName)
}

// problem prints an element with this text, both as its message and as its content.
func (j *junit) problem(element, kind, text string) {
	j.raw("<" + element)
	j.attribute("type", kind)
	j.attribute("message", text)
	j.raw(">")
	j.text(text + "\n")
	j.raw("</" + element + ">")
}

// failure prints the findings of a case in one element: Jenkins shows only the first element of a
// case.
func (j *junit) failure(c *testCase) {
	x := c.all[0]
	message := sentence(x)
	if n := len(c.all) - 1; n > 0 {
		message += ", and " + plural(n, "other finding")
	}
	j.raw("<failure")
	j.attribute("type", cmp.Or(identifier(x.Tool, ""), "symfilter"))
	j.attribute("message", message)
	j.raw(">")
	if !c.process.Complete && !c.single {
		j.text(cutOff(c.process) + ".\n\n")
	}
	for i, x := range c.all {
		switch n := j.size(); {
		case n > maxListBytes:
			j.cut += len(c.all) - i
			j.text(plural(len(c.all)-i, "further finding") + "\n")
			j.raw("</failure>")
			return
		case n > maxStackBytes:
			j.cut++
			j.text(sentence(x) + "\n")
		default:
			j.finding(x)
		}
	}
	j.raw("</failure>")
}

// Limits of stored texts of findings in several processes.
const (
	maxKept       = 4 << 20 // bytes of all texts
	maxKeptFrames = 200     // frames of a finding
)

// finding prints the text of a finding, from memory if possible.
func (j *junit) finding(x *findings.Finding) {
	frames := 0
	for i := range x.Traces {
		frames += len(x.Traces[i].Frames)
	}
	if len(x.Seen) < 2 || frames > maxKeptFrames {
		j.findingText(x)
		return
	}
	text, ok := j.texts[x]
	if !ok {
		var b strings.Builder
		w := j.w
		j.w = bufio.NewWriter(&b)
		j.findingText(x)
		j.w.Flush()
		j.w, text = w, b.String()
		if j.kept+len(text) <= maxKept {
			j.kept += len(text)
			j.texts[x] = text
		}
	}
	j.raw(text)
}

// findingText prints the text of a finding, which is the same for each process.
func (j *junit) findingText(x *findings.Finding) {
	j.text(sentence(x) + "\n")
	j.text("  " + ruleID(x.Tool, x.Kind) + " " + x.ID())
	if n := x.Count(); n > 1 {
		j.text(", " + plural(n, "time"))
	}
	if n := len(x.Seen); n > 1 {
		j.text(" in " + strconv.Itoa(n) + " processes")
	}
	j.raw("\n")
	for i := range x.Traces {
		t := &x.Traces[i]
		if i > 0 {
			j.text("  " + about(t) + "\n")
		}
		for k := range t.Frames {
			if j.size() > maxListBytes {
				j.text("    ...\n")
				return
			}
			f := t.Frames[k]
			word := "    by "
			if k == 0 {
				word = "    at "
			}
			j.text(word + frameName(f))
			switch {
			case f.HasLine && f.File != "":
				file, _ := j.path(f.File)
				j.text(" (" + visible(file, maxAbout) + ":" + strconv.FormatUint(uint64(f.Line), 10) + ")")
			case f.Named() && f.Object != "":
				j.text(" (in " + visible(f.Object, maxAbout) + ")")
			}
			j.raw("\n")
		}
	}
	for _, d := range x.Detail {
		j.text("  " + visible(d, maxAbout) + "\n")
	}
}

func (j *junit) raw(s string) { j.w.WriteString(s) }

func (j *junit) attribute(name, value string) {
	j.raw(" " + name + `="`)
	j.text(value)
	j.raw(`"`)
}

// text prints s, escaped for XML. The caller has made control characters visible, except line ends.
// U+FFFE and U+FFFF, which XML 1.0 also forbids, become visible here.
func (j *junit) text(s string) {
	from := 0
	for i, c := range s {
		if c > '>' && c < '\ufffe' {
			continue
		}
		var to string
		switch c {
		case '&':
			to = "&amp;"
		case '<':
			to = "&lt;"
		case '>':
			to = "&gt;"
		case '"':
			to = "&quot;"
		case '\ufffe':
			to = `\ufffe`
		case '\uffff':
			to = `\uffff`
		default:
			continue
		}
		j.w.WriteString(s[from:i])
		j.w.WriteString(to)
		from = i + len(string(c))
	}
	j.w.WriteString(s[from:])
}
