package main

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/findings"
)

// frameFlags select how frames look on a terminal and in pages.
type frameFlags struct {
	rules      []findings.OwnRule // --own and --system, in the order of the command line
	allFrames  choice
	shortNames bool
}

type ruleFlag struct {
	rules *[]findings.OwnRule
	own   bool
}

func (ruleFlag) Type() string { return cli.Repeated }

func (r ruleFlag) Set(s string) error {
	if strings.Trim(s, "/") == "" {
		return errors.New("not a glob: write, for example, third_party or '/opt/*/lib'")
	}
	*r.rules = append(*r.rules, findings.OwnRule{Own: r.own, Glob: s})
	return nil
}

// A choice is a switch whose default depends on the output.
type choice struct{ set, on bool }

func (c *choice) Set(s string) (err error) {
	c.set = true
	c.on, err = cli.ParseBool(s)
	return err
}

type switchFlag struct{ *choice }

func (switchFlag) Type() string { return cli.Switch }

// minWidth is the least number of columns to which lines are wrapped. No frame fits into fewer.
const minWidth = 20

// lookFor sets the display options in o: width, shortened paths and names, folded frames, and
// module lines. They depend on the flags, and on o.Color and o.Terminal, which are already set.
func (c *config) lookFor(o *filter.Options, stdout *os.File, getenv func(string) string) error {
	own, err := findings.NewOwn(c.frames.rules)
	if err != nil {
		return usageError{err}
	}
	o.Display.ShortNames = c.frames.shortNames
	if c.output == outputHTML || c.source.lines.on {
		o.Display.Own = own
	}
	if o.Output != filter.Text || o.Printer != nil || o.Dialects.Elements {
		return nil
	}
	if !c.raw && (o.Terminal || o.Color == filter.ColorAlways) {
		o.Paths.Clean = true
		o.Display.Width = width(stdout, getenv)
	}
	o.Display.Fold = o.Terminal
	if c.frames.allFrames.set {
		o.Display.Fold = !c.frames.allFrames.on
	}
	o.Display.Fold = o.Display.Fold && !c.backtraces.keepRaw
	o.Display.AtOnce = c.follow.on
	if o.Display.Fold {
		o.Display.Own = own
	}
	if o.Terminal && c.moduleLines == "" && !c.noModules {
		o.ModuleLines = filter.ModuleLinesShort
	}
	return nil
}

// width returns the number of columns of the terminal f, or COLUMNS. It returns 0 if the number is
// unknown or less than minWidth.
func width(f *os.File, getenv func(string) string) (columns int) {
	control(f, func(fd uintptr) {
		if n, _, err := term.GetSize(int(fd)); err == nil {
			columns = n
		}
	})
	if columns <= 0 {
		columns, _ = strconv.Atoi(getenv("COLUMNS")) // unknown if COLUMNS is not a number
	}
	if columns < minWidth {
		return 0
	}
	return columns
}
