package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/publish"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/source"
	"github.com/symfilter/symfilter/internal/startup"
)

type printFindings func(io.Writer, *publish.Result) error

// findingsPrinter returns the printer of findings in a form, or nil for other forms.
func findingsPrinter(form string) printFindings {
	switch form {
	case outputSARIF:
		return publish.SARIF
	case outputJUnit:
		return publish.JUnit
	case outputCodeQuality:
		return publish.CodeQuality
	case outputSuppressions:
		return publish.Suppressions
	}
	return nil
}

type findingsFlags struct {
	category string // --sarif-category
	hash     string // --sarif-hash
	schema   string // --junit
	cases    string // --junit-case
}

const (
	hashStack   = "stack"
	hashLine    = "line"
	junitXUnit  = "xunit"
	caseFinding = "finding"
)

func sarifHashes() []string  { return []string{hashStack, hashLine} }
func junitSchemas() []string { return []string{"gitlab", junitXUnit} }
func junitCases() []string   { return []string{"process", caseFinding} }

// check returns an error if a flag has no effect.
func (f *findingsFlags) check(c *config) error {
	has := func(form string) bool {
		return slices.ContainsFunc(c.outputs, func(o output) bool { return o.form == form })
	}
	if f.hash == hashLine && len(c.source.roots) == 0 {
		return usageError{errors.New("--sarif-hash=line needs the source files: name their folder with --source-root")}
	}
	sarif, junit := has(outputSARIF), has(outputJUnit)
	return errors.Join(
		refuse("needs --output=sarif: add it", usedFlag{"--sarif-category", f.category != "" && !sarif}, usedFlag{"--sarif-hash", f.hash != "" && !sarif}),
		refuse("needs --output=junit: add it", usedFlag{"--junit", f.schema != "" && !junit}, usedFlag{"--junit-case", f.cases != "" && !junit}))
}

// A found collects the findings of a run for its outputs, which print them after all inputs.
type found struct {
	*findings.Collection
	own    *findings.Own
	outs   []foundOutput
	gate   judgement
	prints func(form string) printFindings
	c      *config
}

type foundOutput struct {
	form string
	w    io.Writer
	file *outputFile // file of w; nil: standard output
}

// A findingsReader returns readers of Valgrind's reports that add their findings to a Collection:
// see [access.Valgrind].
type findingsReader interface {
	NewFindings(to *findings.Collection, input string, own *findings.Own) io.WriteCloser
}

// collect makes the collections of findings. budget bounds their memory.
func (f *found) collect(c *config, budget *report.Budget) (err error) {
	f.c = c
	f.gate.flags, f.prints = &c.gates, c.findingsPrinter
	f.gate.after = findings.New(budget)
	if c.gates.diff {
		f.gate.before = findings.New(budget)
	}
	f.own, err = findings.NewOwn(c.frames.rules)
	return err
}

// end prints the findings to all outputs, and gives their files their names. Then it lets the gate
// decide. whole is set if all inputs were read; otherwise the files are discarded. sound is set if
// all inputs were readable. All errors are returned.
func (f *found) end(whole, sound bool, diag *diagnostics) (errs []error) {
	if !whole { // collect may not have been called
		for _, o := range f.outs {
			errs = append(errs, o.file.end(false))
		}
		return errs
	}
	result := f.result()
	if len(f.c.source.roots) > 0 {
		roots, _ := source.OpenRoots(f.c.source.roots) // fails only for folders without sources
		defer roots.Close()
		result.Text = func(file string) []byte {
			text, err := roots.Read(file)
			if err != nil {
				return nil
			}
			return text
		}
	}
	today := time.Now()
	f.compare(result, today)
	for _, o := range f.outs {
		if err := f.prints(o.form)(o.w, result); err != nil {
			errs = append(errs, err)
			o.file.end(false)
			continue
		}
		errs = append(errs, o.file.end(true))
	}
	return append(errs, f.judge(result, sound, diag, today))
}

// result returns the findings for the printers. The current folder is the root of the repository.
func (f *found) result() *publish.Result {
	flags := &f.c.findings
	r := &publish.Result{
		Collection: f.Collection,
		Version:    startup.Release(),
		Empty:      f.gate.empty,
		SARIF:      publish.SARIFOptions{Category: flags.category, LineHash: flags.hash == hashLine},
		JUnit:      publish.JUnitOptions{ByFinding: flags.cases == caseFinding, Strict: flags.schema == junitXUnit},
	}
	dir, err := os.Getwd()
	if err != nil {
		return r // names remain absolute
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	r.Base, r.Bases = filepath.ToSlash(dir), []string{filepath.ToSlash(real)}
	known := make(map[string]string)
	r.Resolve = func(name string) string {
		to, ok := known[name]
		if !ok {
			to = resolve(real, name)
			if len(known) < maxResolved {
				known[name] = to
			}
		}
		return to
	}
	return r
}

// maxResolved bounds the remembered file names; a large program has about 10,000.
const maxResolved = 64 << 10

// resolve resolves the symbolic links in name, a path below dir. It returns name unchanged if the
// file is missing, or if the links lead out of dir.
func resolve(dir, name string) string {
	real, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return name
	}
	rel, err := filepath.Rel(dir, real)
	if err != nil || !filepath.IsLocal(rel) {
		return name
	}
	return filepath.ToSlash(rel)
}

var errNoFindings = errors.New("a profile of Callgrind has no findings: use another --output, or symfilter callgrind with --diff or --limit")
