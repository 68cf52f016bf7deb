package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/internal/asis"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/startup"
	"github.com/symfilter/symfilter/symbolize"
)

const otherCommand = "as"

// byName returns the arguments of a program that was started as word. If word names another
// symbolizer, as a symbolic link may, the arguments begin with the command "as" and word.
func byName(word string, args []string) []string {
	if asis.Named(word) != nil {
		return append([]string{otherCommand, word}, args...)
	}
	return args
}

// runAs runs symfilter in place of another symbolizer, with that symbolizer's flags and output.
// args are the symbolizer's name and arguments.
func runAs(args []string, std standard) (int, error) {
	p := asis.Named(args[0])
	if p == nil {
		return exitUsage, usageError{fmt.Errorf("%q is not the name of another symbolizer: write one of %s", args[0], strings.Join(asis.Names(), ", "))}
	}
	l := p.Parse(args[0], os.Getenv(p.Env), args[1:])
	if refusal := l.Refusal(); refusal != "" {
		io.WriteString(std.err, refusal)
		return exitOption, nil
	}
	switch {
	case l.Help:
		_, err := io.WriteString(std.text, l.HelpText())
		return exitOK, err
	case l.Version:
		_, err := io.WriteString(std.text, l.VersionText(startup.Version()))
		return exitOK, err
	case l.Markup:
		return runLLVM(args[1:], std), nil
	}
	c := newConfig()
	set := pflag.NewFlagSet("symfilter", pflag.ContinueOnError)
	line := commandLine()
	line.Define(set, c, ofLLVM)
	if err := line.FromEnvironment(set, os.LookupEnv); err != nil {
		return exitUsage, usageError{err}
	}
	return c.answer(l, std), nil
}

func (c *config) answer(l *asis.Line, std standard) int {
	offHeap := startup.LimitHeap(int64(c.maxMemory))
	diag := &diagnostics{w: std.err, quiet: c.quiet}
	defer c.close()
	c.noServers = l.NoServers
	c.debugDirs = l.DebugDirs
	var network []symbolize.Finder
	if servers, err := c.client(os.Getenv, &diagnostics{w: std.err, quiet: true}, &statusLine{}); err != nil {
		diag.printf("%v", err)
	} else if len(c.urls) > 0 {
		network = append(network, asis.ByID{Finder: servers})
	}
	c.confine(diag, []string{l.DWP, l.Fallback}, true)
	finders := []symbolize.Finder{report.Files{}}
	for _, f := range c.llvmFinders() {
		finders = append(finders, asis.ByID{Finder: f})
	}
	options := symbolize.Options{Finders: finders, Servers: network, OffHeap: offHeap, DWP: l.DWP}
	l.Rules(&options)
	opened, err := c.openSymbols(l.Fallback, options)
	if err != nil { // fails only for servers, which were checked
		diag.printf("%v", err)
		return exitIO
	}
	defer closeSoon(opened)
	s := &asis.Session{Line: l, Symbolizer: opened.Symbolizer, Context: context.Background(), Out: std.text, Err: std.err}
	return s.Run(std.in)
}
