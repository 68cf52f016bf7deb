package main

import (
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/internal/asis"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/llvmfilter"
	"github.com/symfilter/symfilter/symbolize"
)

// llvmEnv names the variable with words that llvm-symbolizer reads before its arguments.
const llvmEnv = "LLVM_SYMBOLIZER_OPTS"

// llvmAlone maps the flags of llvm-symbolizer 19 without a value to the flags that they mean.
// "-demangle=true" is such a flag, "--demangle=true" is not.
var llvmAlone = sync.OnceValue(func() map[string]string {
	all := make(map[string]string)
	for f := range asis.LLVMFlags() {
		if !f.Valued {
			all[f.Word] = f.Means
		}
	}
	return all
})

// llvmValued has the flags of llvm-symbolizer 19 with a value, which follows "=". true means that
// the value may also be the next word.
var llvmValued = sync.OnceValue(func() map[string]bool {
	all := make(map[string]bool)
	for f := range asis.LLVMFlags() {
		if f.Valued {
			all[f.Word] = f.Spaced
		}
	}
	return all
})

type llvmOptions struct {
	own *pflag.FlagSet // symfilter's flags in the llvm style

	names      symbolize.Names
	paths      llvmfilter.Paths
	noDemangle bool
	noServers  bool
	color      string            // value of the last --color=
	valued     bool              // --color was given with a value
	colored    bool              // --color was given without a value, which takes precedence
	numbers    map[string]string // last values of flags with a number
	hints      []string          // values of --dsym-hint
	dwp        string            // value of --dwp
	fallback   string            // value of --fallback-debug-path
	verbose    bool
	help       bool
	version    bool
	arguments  bool // there were FILEs or addresses, which the style ignores

	missing string   // flag without its value
	unknown []string // words that are not flags of either program
	invalid []string // errors in the values of own
}

// inStyle reports whether the command line or the environment selects the llvm style.
func inStyle(args []string, lookup func(string) (string, bool)) bool {
	style := ""
	variable := commandLine().Variable
	if v, ok := lookup(variable("filter-markup")); ok {
		if on, err := strconv.ParseBool(v); err == nil && on {
			style = styleLLVM
		}
	}
	if v, _ := lookup(variable("style")); v != "" {
		style = v
	}
	for i, word := range args {
		switch {
		case word == "--":
			return style == styleLLVM
		case word == "--filter-markup":
			style = styleLLVM
		case strings.HasPrefix(word, "--filter-markup="):
			// if the value is true, the llvm style later refuses the word, as llvm-symbolizer does
			markupFlag{&style}.Set(word[len("--filter-markup="):])
		case word == "--style" && i+1 < len(args):
			style = args[i+1]
		case strings.HasPrefix(word, "--style="):
			style = word[len("--style="):]
		}
	}
	return style == styleLLVM
}

// parse reads words as llvm-symbolizer does.
func (o *llvmOptions) parse(words []string) {
	for i := 0; i < len(words) && o.missing == ""; i++ {
		word := words[i]
		next := func() (string, bool) {
			if i++; i == len(words) {
				o.missing = word
				return "", false
			}
			return words[i], true
		}
		flag, alone := llvmAlone()[word]
		switch {
		case word == "":
		case word == "-" || word[0] != '-':
			o.arguments = true
		case alone:
			o.set(flag, "")
		case strings.HasPrefix(word, "--"):
			o.long(word, next)
		default:
			word = o.grouped(word)
			if word == "-e" {
				if file, ok := next(); ok {
					o.set("--obj", file)
				}
			}
		}
	}
}

// long reads a flag with two dashes that is not in llvmAlone.
func (o *llvmOptions) long(word string, next func() (string, bool)) {
	name, value, has := strings.Cut(word, "=")
	spaced, valued := llvmValued()[name]
	switch {
	case valued && has:
		if name == "--color" {
			name += "="
		}
		o.set(name, value)
		return
	case valued && spaced:
		if value, ok := next(); ok {
			o.set(name, value)
		}
		return
	}
	flag := o.own.Lookup(name[2:])
	if _, theirs := llvmAlone()[name]; theirs || valued || flag == nil {
		o.unknown = append(o.unknown, word)
		return
	}
	if !has {
		if value = flag.NoOptDefVal; value == "" {
			var ok bool
			if value, ok = next(); !ok {
				return
			}
		}
	}
	if err := o.own.Set(flag.Name, value); err != nil {
		o.invalid = append(o.invalid, err.Error())
	}
}

// grouped reads short flags, such as "-sC". It returns "-e" if the group ends in "e": the next word
// is the value.
func (o *llvmOptions) grouped(word string) string {
	for ; len(word) > 1; word = "-" + word[2:] {
		flag, known := llvmAlone()[word] // -demangle=true after other letters
		if known {
			o.set(flag, "")
			return ""
		}
		letter, rest := word[:2], word[2:]
		flag, known = llvmAlone()[letter]
		switch value, has := strings.CutPrefix(rest, "="); {
		case letter == "-e" && rest == "":
			return letter
		case letter == "-e":
			o.set("--obj", value)
			return ""
		case letter == "-f" && has:
			o.set("--functions", value)
			return ""
		case known && has:
			o.unknown = append(o.unknown, word)
			return ""
		case known:
			o.set(flag, "")
		case letter == "-q":
			o.own.Set("quiet", "true")
		default:
			o.unknown = append(o.unknown, letter)
		}
	}
	return ""
}

// set records a flag of llvm-symbolizer. It ignores flags that affect only the answers for single
// addresses.
func (o *llvmOptions) set(flag, value string) {
	switch flag {
	case "--basenames":
		o.paths = llvmfilter.Basenames
	case "--relativenames":
		o.paths = llvmfilter.RelativePaths
	case "--debuginfod", "--no-debuginfod":
		o.noServers = flag == "--no-debuginfod"
	case "--demangle", "--no-demangle":
		o.noDemangle = flag == "--no-demangle"
		// the command line takes precedence over the environment
		o.own.Lookup("no-demangle").Changed = true
	case "--functions":
		o.names = asis.NamesOf(value)
	case "--color":
		o.colored = true
	case "--color=":
		o.color, o.valued = value, true
	case "--obj", "--exe":
		if value != "" {
			o.own.Set("obj", value)
		}
	case "--debug-file-directory":
		if value == "" {
			value = "."
		}
		o.own.Set("debug-file-directory", value)
	case "--adjust-vma", "--cache-size", "--print-source-context-lines":
		if o.numbers == nil {
			o.numbers = make(map[string]string)
		}
		o.numbers[flag] = value
	case "--dsym-hint":
		o.hints = append(o.hints, value)
	case "--dwp":
		o.dwp = value
	case "--fallback-debug-path":
		o.fallback = value
	case "--verbose":
		o.verbose = true
	case "--help":
		o.help = true
	case "--version":
		o.version = true
	}
}

// badNumber returns llvm-symbolizer's error about a value that is not a number, or "". The error
// has no newline.
func (o *llvmOptions) badNumber() string {
	for _, flag := range []string{"--adjust-vma", "--cache-size", "--print-source-context-lines"} {
		value, ok := o.numbers[flag]
		if !ok {
			continue
		}
		_, err := strconv.ParseUint(value, 0, 64)
		if flag == "--print-source-context-lines" {
			_, err = strconv.ParseInt(value, 0, 32)
		}
		if err != nil || strings.ContainsAny(value, "_+") {
			return flag + "=: expected a non-negative integer, but got '" + value + "'"
		}
	}
	return ""
}

// errors returns llvm-symbolizer's errors about the words.
func (o *llvmOptions) errors() (lines []string) {
	if o.missing != "" {
		lines = append(lines, o.missing+": missing argument")
	}
	for _, word := range o.unknown {
		line := "unknown argument '" + word + "'"
		if near := nearest(word); near != "" {
			line += ", did you mean '" + near + "'?"
		}
		lines = append(lines, line)
	}
	return append(lines, o.invalid...)
}

// nearest returns the flag that differs from word by one character, or "". If word has a value
// after "=", the result has the same value.
func nearest(word string) string {
	name, value, has := strings.Cut(word, "=")
	best := ""
	for flag := range llvmAlone() {
		if len(strings.TrimLeft(flag, "-")) >= 4 && cli.OneApart(word, flag) && (best == "" || flag < best) {
			best = flag
		}
	}
	if best != "" {
		return best
	}
	for flag, spaced := range llvmValued() {
		if (has && value != "" || !has && spaced && len(flag) >= 6) && cli.OneApart(name, flag) && (best == "" || flag < best) {
			best = flag
		}
	}
	if best != "" && has {
		best += "=" + value
	}
	return best
}
