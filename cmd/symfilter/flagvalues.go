package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	styleOurs = "symfilter"
	styleLLVM = "llvm"

	// prints reports of Valgrind as Valgrind does; other inputs as in styleOurs
	styleValgrind = "valgrind"
)

// A markupFlag is --filter-markup, which means --style=llvm.
type markupFlag struct{ style *string }

func (m markupFlag) Set(s string) error {
	on, err := cli.ParseBool(s)
	if err != nil {
		return err
	}
	*m.style = styleOurs
	if on {
		*m.style = styleLLVM
	}
	return nil
}

type fileName string

func (n *fileName) Set(s string) error {
	if s == "" {
		return cli.ErrEmpty
	}
	*n = fileName(s)
	return nil
}

// A nameList is a list of names, separated by commas.
type nameList []string

func (l *nameList) Set(s string) error {
	names := strings.Split(s, ",")
	if slices.Contains(names, "") {
		return errors.New("an empty name: write NAME or NAME,NAME")
	}
	*l = append(*l, names...)
	return nil
}

type processKey struct{ *regexp.Regexp }

func (k *processKey) Set(s string) (err error) {
	k.Regexp, err = filter.ProcessKey(s)
	return err
}

// A byteSize is a flag with a number of bytes: 512M, 2GiB, 1073741824.
type byteSize int64

// A memorySize is a byteSize of at least minMemory.
type memorySize byteSize

func (m *memorySize) Set(s string) error {
	var n byteSize
	if err := n.Set(s); err != nil {
		return err
	}
	if n < minMemory {
		return fmt.Errorf("too small: write at least %dM", minMemory>>20)
	}
	*m = memorySize(n)
	return nil
}

// A jobs is a flag with a number of processors; 0: not given.
type jobs int

func (j *jobs) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > symbolize.MaxJobs {
		return fmt.Errorf("not a number from 1 to %d", symbolize.MaxJobs)
	}
	*j = jobs(n)
	return nil
}

// minMemory is the minimum of --max-memory: one compilation unit of a large program needs this
// much.
const minMemory = 16 << 20 // bytes

func (b *byteSize) Set(s string) error {
	upper := strings.ToUpper(s) // longer than s if s is not UTF-8
	digits := strings.TrimRight(upper, "KMGTIB")
	unit := strings.TrimSuffix(strings.TrimSuffix(upper[len(digits):], "B"), "I")
	shift, ok := map[string]int{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[unit]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("not a size: write a number of bytes, or for example 512M or 2G")
	}
	*b = byteSize(n << shift)
	return nil
}

// A waitFor is a flag with the time to wait for missing files. set is true if the flag was given.
type waitFor struct {
	time.Duration
	set bool
}

func (w *waitFor) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fmt.Errorf("not a duration: write 500ms, 2s or 1m30s")
	}
	w.Duration, w.set = d, true
	return nil
}

type colorWhen string

// mode returns the treatment of colours. In order of precedence, it depends on the flag,
// CLICOLOR_FORCE, NO_COLOR (no-color.org), terminal and TERM=dumb.
func (c colorWhen) mode(terminal bool, getenv func(string) string) filter.Color {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case c == "always":
		return filter.ColorAlways
	case c == "never":
		return filter.ColorNever
	case force != "" && force != "0":
		return filter.ColorAlways
	case getenv("NO_COLOR") != "":
		return filter.ColorNever
	case !terminal:
		return filter.ColorKeep
	case getenv("TERM") == "dumb":
		return filter.ColorNever
	}
	return filter.ColorAlways
}

func (c *config) modules() filter.ModuleLines {
	switch {
	case c.noModules, c.moduleLines == "none":
		return filter.ModuleLinesNone
	case c.moduleLines == "short":
		return filter.ModuleLinesShort
	case c.moduleLines == "raw":
		return filter.ModuleLinesRaw
	}
	return filter.ModuleLinesFull
}

// checkWords returns an error if flags on the command line contradict each other. The command line
// takes precedence over flags from the environment.
func (c *config) checkWords() error {
	for _, pair := range []struct {
		one, other string
		both       bool
	}{
		{"--quiet", "--verbose", c.quiet && c.verbose},
		{"--debuginfod", "--no-debuginfod", c.servers && c.noServers},
		{"--debuginfod", "--offline", c.servers && c.offline},
		{"--input=" + c.input, "the command " + c.command, c.command != "" && c.input != c.command},
	} {
		if pair.both {
			return usageError{fmt.Errorf("%s contradicts %s: remove one of them", pair.one, pair.other)}
		}
	}
	return nil
}

// check returns an error if the flags contradict each other.
func (c *config) check() error {
	if err := c.checkTable(); err != nil {
		return err
	}
	if err := c.checkFormat(); err != nil {
		return err
	}
	if c.noModules && c.moduleLines != "" && c.moduleLines != "none" {
		return usageError{fmt.Errorf("--omit-module-lines contradicts --module-lines=%s: remove one of them", c.moduleLines)}
	}
	if c.backtraces.keepRaw && c.backtraces.names.none {
		return usageError{fmt.Errorf("--keep-raw has no effect with --dialects=none: remove one of them")}
	}
	if err := c.findings.check(c); err != nil {
		return err
	}
	if err := c.checkRecords(); err != nil {
		return err
	}
	if c.output != outputMarkup {
		return nil
	}
	return refuse("has no effect with --output=markup: remove one of them",
		usedFlag{"--dumpfile-output", c.dumps != ""},
		usedFlag{"--part", len(c.callgrind.parts) > 0},
		usedFlag{"--thread", len(c.callgrind.threads) > 0},
		usedFlag{"--source", c.source.lines.on},
		usedFlag{"--source-url", c.source.url != ""},
		usedFlag{"--strict", c.strict},
		usedFlag{"--process-key", c.process.Regexp != nil},
		usedFlag{"--json-key", len(c.keys) > 0},
		usedFlag{"--omit-module-lines", c.noModules},
		usedFlag{"--module-lines", c.moduleLines != ""})
}

// checkRecords returns an error if --json-key or --reply contradicts other flags.
func (c *config) checkRecords() error {
	name := c.inputName()
	if len(c.keys) > 0 {
		if c.process.Regexp != nil {
			return usageError{errors.New("--json-key contradicts --process-key: remove one of them")}
		}
		if named := name != "" && name != input.Auto.String(); named && !slices.Contains([]input.Format{input.JSON, input.Journal, input.CRI, input.Docker}, c.inputFormat()) {
			return usageError{fmt.Errorf("--json-key is for logs whose lines are JSON objects, not --input=%s: remove one of them", name)}
		}
	}
	if !c.reply {
		return nil
	}
	if name != input.JSON.String() {
		return usageError{errors.New("--reply needs --input=json: add it")}
	}
	for _, o := range c.outputs {
		if o.form != outputText || o.file != "" {
			return usageError{fmt.Errorf("--reply prints replies, not %s: remove one of them", o.flag())}
		}
	}
	return refuse("has no effect with --reply: remove one of them",
		usedFlag{"--follow", c.follow.on},
		usedFlag{"--process-key", c.process.Regexp != nil},
		usedFlag{"--source", c.source.lines.on},
		usedFlag{"--dumpfile-output", c.dumps != ""})
}

// checkTable returns an error if flags for the table of a profile are used with another output.
func (c *config) checkTable() error {
	if c.output == "" || c.output == outputText {
		return nil
	}
	f := &c.callgrind
	ofTable := c.inputName() == input.Callgrind.String()
	return refuse("affects only the table, not --output="+c.output+": remove one of them",
		usedFlag{"--inclusive", f.inclusive},
		usedFlag{"--tree", f.tree != ""},
		usedFlag{"--threshold", f.threshold != nil},
		usedFlag{"--show", f.show != "" && !isStacked(c.output)},
		usedFlag{"--sort", f.sort != ""},
		usedFlag{"--source", c.source.lines.on && ofTable},
		usedFlag{"--source-root", len(c.source.roots) > 0 && ofTable})
}

// A usedFlag is the name of a flag. used is set if the flag was given.
type usedFlag struct {
	name string
	used bool
}

// refuse returns a usage error about the first given flag, or nil. problem is the text after the
// flag's name.
func refuse(problem string, flags ...usedFlag) error {
	if i := slices.IndexFunc(flags, func(f usedFlag) bool { return f.used }); i >= 0 {
		return usageError{fmt.Errorf("%s %s", flags[i].name, problem)}
	}
	return nil
}

func (c *config) prefixMaps() (maps []buildid.PrefixMap, err error) {
	for _, s := range c.prefixes {
		from, to, ok := strings.Cut(s, "=")
		if !ok || from == "" {
			return nil, usageError{fmt.Errorf("--prefix-map %q: write OLD=NEW", s)}
		}
		maps = append(maps, buildid.PrefixMap{Old: from, New: to})
	}
	return maps, nil
}
