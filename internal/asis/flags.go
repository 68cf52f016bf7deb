package asis

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/symbolize"
)

// An option is the effect of a flag.
type option uint8

const (
	ignored option = iota // without effect on ELF files
	absolutePaths
	refused
	addresses
	adjustVMA
	basenames
	buildID
	contextLines
	debugDir
	debuginfod
	demangle
	dwp
	fallback
	filterMarkup
	functions
	help
	inlines
	noDebuginfod
	noDemangle
	noInlines
	objectFile
	outputStyle
	pretty
	relativeNames
	section
	symbolNames
	symbolSections
	target
	verbose
	version
)

// A form selects how a flag takes its value.
type form uint8

const (
	alone    form = iota // no value
	joined               // after "="
	either               // after "=", or the next word
	short                // one letter; the value is the rest of the word, or the next word
	attached             // one letter; the value, if there is one, is the rest of the word
)

// A flag is one spelling of an option: --addresses and -a are two flags with the same option.
type flag struct {
	word   string
	form   form
	option option
	reason string // reason of a refused option
}

const (
	ofPDB  = "reads PDB files of Windows; symfilter reads ELF files"
	ofMach = "is for Mach-O files of macOS; symfilter reads ELF files"
	ofCOFF = "is for addresses relative to the image base of COFF files of Windows; symfilter reads ELF files"
)

// flags are the flags of llvm-symbolizer and llvm-addr2line 19.
var flags = [...]flag{
	{word: "--addresses", option: addresses}, {word: "--print-address", option: addresses}, {word: "-a", option: addresses},
	{word: "--adjust-vma", form: either, option: adjustVMA},
	{word: "--basenames", option: basenames}, {word: "-s", option: basenames},
	{word: "--build-id", form: either, option: buildID},
	{word: "--cache-size", form: either},
	{word: "--color"}, {word: "--color", form: joined},
	{word: "--debug-file-directory", form: either, option: debugDir},
	{word: "--debuginfod", option: debuginfod}, {word: "--no-debuginfod", option: noDebuginfod},
	{word: "--default-arch", form: either},
	{word: "--demangle", option: demangle}, {word: "-C", option: demangle}, {word: "-demangle=true", option: demangle},
	{word: "--no-demangle", option: noDemangle}, {word: "-demangle=false", option: noDemangle},
	{word: "--dia", option: refused, reason: ofPDB},
	{word: "--dsym-hint", form: either, option: refused, reason: ofMach},
	{word: "--dwp", form: either, option: dwp},
	{word: "--fallback-debug-path", form: either, option: fallback},
	{word: "--filter-markup", option: filterMarkup},
	{word: "--functions", option: functions}, {word: "-f", option: functions},
	{word: "--functions", form: joined, option: functions}, {word: "-f", form: joined, option: functions},
	{word: "--help", option: help}, {word: "-h", option: help},
	{word: "--inlines", option: inlines}, {word: "-i", option: inlines},
	{word: "--inlining", option: inlines}, {word: "--inlining=true", option: inlines},
	{word: "--no-inlines", option: noInlines}, {word: "--inlining=false", option: noInlines},
	{word: "--obj", form: either, option: objectFile}, {word: "--exe", form: either, option: objectFile}, {word: "-e", form: short, option: objectFile},
	{word: "--output-style", form: either, option: outputStyle},
	{word: "--pretty-print", option: pretty}, {word: "-p", option: pretty},
	{word: "--print-source-context-lines", form: either, option: contextLines},
	{word: "--relative-address", option: refused, reason: ofCOFF},
	{word: "--relativenames", option: relativeNames},
	{word: "--untag-addresses"}, {word: "--no-untag-addresses"},
	{word: "--verbose", option: verbose},
	{word: "--version", option: version}, {word: "-v", option: version},
}

// An LLVMFlag is a flag of llvm-symbolizer 19 with a long name, or without a value.
type LLVMFlag struct {
	Word string
	// the first spelling of the option: --basenames for -s; Word if ignored or refused
	Means  string
	Valued bool // has a value, after "="
	Spaced bool // the value may also be the next word
}

// LLVMFlags returns the flags of llvm-symbolizer 19, for commands with another flag parser.
func LLVMFlags() iter.Seq[LLVMFlag] {
	return func(yield func(LLVMFlag) bool) {
		for i := range flags {
			f := &flags[i]
			if f.form == short || f.form == joined && !strings.HasPrefix(f.word, "--") {
				continue
			}
			means := f.word
			if f.option != ignored && f.option != refused {
				means = flags[slices.IndexFunc(flags[:], func(o flag) bool { return o.option == f.option })].word
			}
			if !yield(LLVMFlag{f.word, means, f.form != alone, f.form == either}) {
				return
			}
		}
	}
}

func flagOf(word string, forms ...form) *flag {
	for i := range flags {
		for _, f := range forms {
			if flags[i].word == word && flags[i].form == f {
				return &flags[i]
			}
		}
	}
	return nil
}

// parse reads the words of a command line as LLVM's tools do.
func (l *Line) parse(words []string) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		next := func(flag string) (value string, ok bool) {
			if i++; i == len(words) {
				l.missing = flag
				return "", false
			}
			return words[i], true
		}
		switch {
		case word == "":
		case word == "-" || word[0] != '-':
			l.Questions = append(l.Questions, word)
		default:
			l.flag(word, next)
		}
	}
}

// flag reads a word that begins with a dash. next returns the following word, the value of a flag.
func (l *Line) flag(word string, next func(flag string) (string, bool)) {
	if f := flagOf(word, alone); f != nil {
		l.set(f, word, "")
		return
	}
	if !strings.HasPrefix(word, "--") {
		l.group(word, next)
		return
	}
	name, value, has := strings.Cut(word, "=")
	f := flagOf(name, joined, either)
	switch {
	case f != nil && has:
		l.set(f, name+"=", value)
	case f != nil && f.form == either:
		if value, has = next(word); has {
			l.set(f, name+"=", value)
		}
	default:
		l.fail("unknown argument '%s'", word)
	}
}

// group reads short flags, such as -fpe FILE.
func (l *Line) group(word string, next func(flag string) (string, bool)) {
	for rest := word[1:]; rest != ""; rest = rest[1:] {
		if f := flagOf("-"+rest, alone); f != nil {
			l.set(f, "-"+rest, "") // -demangle=true after other letters
			return
		}
		letter, value := "-"+rest[:1], rest[1:]
		if f := flagOf(letter, short); f != nil {
			value, ok := strings.TrimPrefix(value, "="), true
			if len(rest) == 1 {
				value, ok = next(letter)
			}
			if ok {
				l.set(f, letter, value)
			}
			return
		}
		if f := flagOf(letter, joined); f != nil && strings.HasPrefix(value, "=") {
			l.set(f, letter+"=", value[1:])
			return
		}
		f := flagOf(letter, alone)
		if f == nil {
			l.fail("unknown argument '%s'", letter)
			continue
		}
		l.set(f, letter, "")
	}
}

// set records a flag and its value. Errors name the flag as spelled.
func (l *Line) set(f *flag, spelled, value string) {
	switch f.option {
	case refused:
		l.fail("%s %s", f.word, f.reason)
	case addresses:
		l.addresses = true
	case adjustVMA:
		l.adjust = l.number(spelled, value, 64)
	case basenames:
		l.paths = onlyNames
	case relativeNames:
		l.paths = relativePaths
	case buildID:
		l.buildID, l.idFlag = value, spelled
	case contextLines:
		l.context = int(l.number(spelled, value, 31))
	case debugDir:
		l.DebugDirs = append(l.DebugDirs, value)
	case debuginfod, noDebuginfod:
		l.NoServers = f.option == noDebuginfod
	case demangle, noDemangle:
		l.mangled = f.option == noDemangle
	case dwp:
		l.DWP = value
	case fallback:
		l.Fallback = value
	case filterMarkup:
		l.Markup = true
	case functions:
		l.Names = NamesOf(value)
	case help:
		l.Help = true
	case inlines, noInlines:
		l.inlines = f.option == inlines
	case objectFile:
		l.object, l.hasObject = value, true
	case outputStyle:
		l.setStyle(value)
	case pretty:
		l.pretty = true
	case verbose:
		l.verbose = true
	case version:
		l.Version = true
	}
}

// NamesOf returns the names that --functions=kind selects. As in LLVM, an unknown kind means
// linkage names.
func NamesOf(kind string) symbolize.Names {
	switch kind {
	case "none":
		return symbolize.NoNames
	case "short":
		return symbolize.ShortNames
	}
	return symbolize.LinkageNames
}

// setStyle sets the style of answers. As in LLVM, an unknown style means LLVM.
func (l *Line) setStyle(name string) {
	l.style = styleLLVM
	switch name {
	case "GNU":
		l.style = styleGNU
	case "JSON":
		l.style = styleJSON
	}
}

// number parses value, a number of at most bits bits. The prefix 0x, 0b, 0o or 0 gives its base.
func (l *Line) number(spelled, value string, bits int) uint64 {
	n, err := strconv.ParseUint(value, 0, bits)
	if err != nil || strings.ContainsAny(value, "_+") {
		l.badNumber = spelled + ": expected a non-negative integer, but got '" + value + "'"
	}
	return n
}
