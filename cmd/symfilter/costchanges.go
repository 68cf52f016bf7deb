package main

import (
	"fmt"
	"slices"

	"github.com/symfilter/symfilter/callgrind"
	"github.com/symfilter/symfilter/internal/cli"
)

// changeFlags are the flags that compare profiles, and limit the costs or their changes.
type changeFlags struct {
	diff      bool
	limits    limitList
	functions substitutionList
	files     substitutionList
	before    int // inputs before the change, with diff
}

// check returns an error if the flags contradict each other, and sets f.before.
func (f *changeFlags) check(c *config, files []string) error {
	name := ""
	switch {
	case f.diff:
		name = "--diff"
		before, _, err := c.sides(files)
		if err != nil {
			return err
		}
		f.before = len(before)
	case len(f.limits) > 0:
		name = "--limit"
		if i := slices.IndexFunc(f.limits, callgrind.Limit.IsChange); i >= 0 {
			return usageError{fmt.Errorf("--limit %s: a change in percent needs --diff OLD NEW", f.limits[i])}
		}
	default:
		return refuse("needs --diff or --limit", usedFlag{"--mod-funcname", len(f.functions) > 0}, usedFlag{"--mod-filename", len(f.files) > 0})
	}
	for _, o := range c.outputs {
		if own := o.form == outputMarkup || o.form == outputHTML || inputOf(o.form) == o.form; own || f.diff && !slices.Contains([]string{outputText, outputJSON, outputPprof, outputFolded}, o.form) {
			return usageError{fmt.Errorf("%s has no effect with %s: write --output=text, json, pprof or folded", name, o.flag())}
		}
	}
	if err := refuse("has no effect with --follow: profiles are read to their end", usedFlag{name, c.follow.on}); err != nil || !f.diff {
		return err
	}
	return refuse("has no effect with --diff: remove one of them",
		usedFlag{"--tree", c.callgrind.tree != ""})
}

type limitList []callgrind.Limit

func (*limitList) Type() string { return cli.EachLine }

func (l *limitList) Set(s string) error {
	limit, err := callgrind.ParseLimit(s)
	if err == nil {
		*l = append(*l, limit)
	}
	return err
}

type substitutionList []callgrind.Substitution

func (*substitutionList) Type() string { return cli.EachLine }

func (l *substitutionList) Set(s string) error {
	one, err := callgrind.ParseSubstitution(s)
	if err == nil {
		*l = append(*l, one)
	}
	return err
}

// noDash is the value of config.dash without a "--".
const noDash = -1

// sides returns the inputs on both sides of a comparison: before and after the word "--". Without
// "--", there must be two inputs.
func (c *config) sides(files []string) (before, after []string, err error) {
	if c.dash != noDash && c.dash <= len(files) {
		before, after = files[:c.dash], files[c.dash:]
	} else if len(files) == 2 {
		before, after = files[:1], files[1:]
	}
	if len(before) == 0 || len(after) == 0 {
		return nil, nil, usageError{fmt.Errorf("--diff compares OLD with NEW: name two files, or any number on both sides of --, as in --diff old/* -- new/*")}
	}
	return before, after, nil
}
