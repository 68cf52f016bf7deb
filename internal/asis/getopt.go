package asis

import (
	"fmt"
	"strings"
)

// parseGNU parses a command line like getopt_long of glibc: long options may be abbreviated, and
// other words may come between options. It stops at an error.
func (l *Line) parseGNU(flags []flag, words []string) {
	for i := 0; i < len(words) && len(l.errors) == 0; i++ {
		word := words[i]
		next := func() (string, bool) {
			if i++; i == len(words) {
				return "", false
			}
			return words[i], true
		}
		switch {
		case word == "--":
			l.Questions = append(l.Questions, words[i+1:]...)
			return
		case len(word) < 2 || word[0] != '-':
			l.Questions = append(l.Questions, word)
		case word[1] == '-':
			l.long(flags, word, next)
		default:
			l.cluster(flags, word, next)
		}
	}
}

func (l *Line) long(flags []flag, word string, next func() (string, bool)) {
	name, value, has := strings.Cut(word, "=")
	f, others := abbreviated(flags, name)
	switch {
	case others != "":
		l.misuse("option '%s' is ambiguous; possibilities:%s", word, others)
	case f == nil:
		l.misuse("unrecognized option '%s'", word)
	case f.form == alone && has:
		l.misuse("option '%s' doesn't allow an argument", f.word)
	case f.form == either && !has:
		if value, has = next(); !has {
			l.misuse("option '%s' requires an argument", f.word)
			return
		}
		fallthrough
	default:
		l.setGNU(f, value)
	}
}

// abbreviated returns the flag whose long name is name, or begins with name. If several flags with
// different effects begin with name, others lists them.
func abbreviated(flags []flag, name string) (found *flag, others string) {
	ambiguous := false
	for i := range flags {
		f := &flags[i]
		switch {
		case f.word == name:
			return f, ""
		case !strings.HasPrefix(f.word, "--") || !strings.HasPrefix(f.word, name):
			continue
		case found == nil:
			found = f
		case found.option != f.option || found.form != f.form:
			ambiguous = true
		}
		others += " '" + f.word + "'"
	}
	if !ambiguous {
		others = ""
	}
	return found, others
}

// cluster reads a word of one-letter options, such as -fpe FILE.
func (l *Line) cluster(flags []flag, word string, next func() (string, bool)) {
	for rest := word[1:]; rest != "" && len(l.errors) == 0; {
		var f *flag
		for i := range flags {
			if flags[i].word == "-"+rest[:1] {
				f = &flags[i]
			}
		}
		letter := rest[:1]
		rest = rest[1:]
		switch {
		case f == nil:
			l.misuse("invalid option -- '%s'", letter)
		case f.form == alone:
			l.setGNU(f, "")
		case rest == "" && f.form == short:
			value, ok := next()
			if !ok {
				l.misuse("option requires an argument -- '%s'", letter)
				return
			}
			l.setGNU(f, value)
		default: // the value is the rest of the word
			l.setGNU(f, rest)
			return
		}
	}
}

// misuse records an error in the command line, with the usage.
func (l *Line) misuse(format string, args ...any) {
	text := printable(l.tool + ": " + fmt.Sprintf(format, args...))
	l.errors = append(l.errors, text+"\n"+l.program.usage())
}

func (l *Line) setGNU(f *flag, value string) {
	switch f.option {
	case refused:
		l.errors = append(l.errors, printable(l.tool+": "+f.word+" "+f.reason)+"\n")
	case absolutePaths:
		l.paths = wholePaths
	case addresses:
		l.addresses = true
	case basenames:
		l.paths = onlyNames
	case debugDir:
		l.Fallback = value
	case demangle:
		l.setDemangle(value)
	case functions:
		l.named = true
	case help:
		l.Help = true
	case inlines:
		l.inlines = true
	case objectFile:
		l.file = value
	case pretty:
		l.pretty = true
	case relativeNames:
		l.paths = relativePaths
	case section:
		l.section = value
	case symbolNames:
		l.symbols = true
	case symbolSections:
		l.symbols, l.sections = true, true
	case target:
		l.target = value
	case version:
		l.Version = true
	}
}
