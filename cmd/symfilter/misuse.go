package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/wording"
)

// habit returns advice about a flag of addr2line or llvm-symbolizer, or "" for other names.
func habit(name string) string {
	switch name {
	case "e", "exe":
		return "for single addresses, write symfilter addr FILE ADDRESS...; a log names its programs, and --symbol-path FILE adds a debug file"
	case "f", "functions":
		return "functions are always printed"
	case "C", "demangle":
		return "names are demangled unless --no-demangle is given"
	case "i", "inlines", "inlining":
		return "inlined calls are printed unless --no-inlines is given"
	case "p", "pretty-print":
		return "the function, file and line of a frame are always printed on one line"
	case "a", "addresses":
		return "addresses are always printed"
	case "debug-dir", "debug-directory", "debugdir":
		return "did you mean --debug-file-directory?"
	case "V":
		return "write --version"
	}
	return ""
}

// filterHabit returns advice about a flag of tail or another filter, or "" for other names.
func filterHabit(name string) string {
	switch name {
	case "f":
		return habit(name) + "; to keep reading a file as it grows, write -F"
	case "n", "lines":
		return "all lines are printed; with --follow, --start-at=end skips the lines that the file already has"
	case "d":
		return "write -s PATH for a file or folder of debug files"
	case "o":
		return "symfilter writes to standard output; --output=FORM chooses the form"
	case "c":
		return "write --color=WHEN"
	case "j", "json":
		return "write --output=json"
	case "no-color", "nocolor", "no-colour":
		return "write --color=never"
	}
	return ""
}

// flagHint adds a suggestion to the error about an unknown flag.
func flagHint(err error, set *pflag.FlagSet) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	name := unknown.GetSpecifiedName()
	if o := commandLine().Flag(name, ofAll); o != nil && set.Lookup(name) == nil {
		for _, cmd := range commands() {
			if o.In&cmd.In != 0 {
				return fmt.Errorf("--%s is a flag of %s", name, strings.TrimSpace("symfilter "+cmd.Name))
			}
		}
	}
	hint := habit(name)
	if set.Lookup("follow") != nil { // the command filters logs
		hint = cmp.Or(filterHabit(name), hint)
	}
	if cmd := commandNamed(name); hint == "" && cmd != nil {
		hint = name + " is a command: write symfilter " + name
	}
	if _, isLLVMs := llvmAlone()["--"+name]; hint == "" && (isLLVMs || llvmTakes("--"+name)) {
		hint = "flags of llvm-symbolizer need --filter-markup"
	}
	if hint == "" && len(name) > 1 {
		if near := cli.NearFlag(name, set); near != "" {
			hint = "did you mean --" + near + "?"
		}
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

func llvmTakes(flag string) bool { _, ok := llvmValued()[flag]; return ok }

// openError returns the reason why name could not be opened, with a suggestion.
func openError(name string, err error) string {
	if name == "" {
		return "the name of a FILE is empty; write a name, or - for standard input"
	}
	msg := "open " + name + ": " + wording.Cause(err).Error()
	if info, err := os.Stat(name); err == nil && info.Mode()&os.ModeSocket != 0 {
		return msg + "; a program such as nc or socat can read this socket"
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return msg
	}
	switch {
	case slices.Contains([]string{"auto", "always", "never"}, name):
		return msg + "; write --color=" + name
	case name == "version":
		return msg + "; write --version"
	case commandNamed(name) != nil:
		return msg + "; as a command, " + name + " must be the first word"
	case nearCommand(name) != "":
		return msg + "; did you mean the command " + nearCommand(name) + "?"
	// addr2line takes an address as an argument, so a user may write the address here
	case regexp.MustCompile(`^(0[xX])?[0-9a-fA-F]{4,16}$`).MatchString(name):
		return msg + "; arguments are logs: for a single address, write symfilter addr FILE " + name
	}
	return msg
}

// nearCommand returns the command whose name differs from word by case, one letter, or an exchange
// of neighbours. It returns "" if there is none.
func nearCommand(word string) string {
	word = strings.ToLower(word)
	for _, cmd := range commands() {
		if len(cmd.Name) > 3 && (cmd.Name == word || cli.OneSlip(cmd.Name, word)) {
			return cmd.Name
		}
	}
	return ""
}

// readError returns the reason why name could not be read, with a suggestion.
func readError(name string, err error) string {
	msg := "read " + name + ": " + wording.Cause(err).Error()
	if errors.Is(err, syscall.EISDIR) {
		if name == standardName {
			return "standard input is a folder: write the names of the logs in it, as in symfilter FOLDER/*.log; if it holds debug files, write --symbol-path FOLDER"
		}
		msg += "; name the logs in it, or write --symbol-path " + name + " if it holds debug files"
	}
	return msg
}

// encodingHint returns advice on an input that is not in UTF-8.
func encodingHint(e input.Encoding, name string) string {
	if e.Read() {
		return "is " + e.String() + ", and is printed as UTF-8"
	}
	if name == standardName {
		name = ""
	} else {
		name = " " + name
	}
	is := "looks like " + e.String() + " without a byte order mark"
	if e.Marked() {
		is = "is " + e.String()
	}
	return is + ", and is printed unchanged; to symbolize it, run iconv -f " + e.String() + name + " | symfilter"
}
