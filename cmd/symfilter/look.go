package main

import (
	"errors"
	"strings"

	"github.com/symfilter/symfilter/report"
)

// lookFlags set how frames are shown to people: on a terminal and in pages.
type lookFlags struct {
	rules []report.OwnRule // --own and --system, in the order of the command line
}

// A ruleFlag is --own or --system.
type ruleFlag struct {
	rules *[]report.OwnRule
	own   bool
}

func (r ruleFlag) Set(s string) error {
	if strings.Trim(s, "/") == "" {
		return errors.New("not a glob, such as third_party or '/opt/*/lib'")
	}
	*r.rules = append(*r.rules, report.OwnRule{Own: r.own, Glob: s})
	return nil
}
