package walkthrough

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	shell    = regexp.MustCompile("(?ms)^[ \t]*```sh(?: manual)?\n(.*?)^[ \t]*```")
	document = regexp.MustCompile(`<<-?'?(\w+)'?`)
	redirect = regexp.MustCompile(`\d?(?:>>|>|<)(?:&\d|[ \t]*[^\s|;&()]+)`)
	setting  = regexp.MustCompile(`^\w+=`)
)

// Commands returns the arguments of each call of a program in a page's blocks of commands,
// including blocks that are not run. The program is called by its name, by its path, or by go run.
func Commands(page, program string) (all [][]string) {
	for _, m := range shell.FindAllStringSubmatch(page, -1) {
		end := "" // the last line of a here-document
		for line := range strings.Lines(strings.ReplaceAll(m[1], "\\\n", " ")) {
			line = strings.TrimSpace(line)
			if end != "" {
				if line == end {
					end = ""
				}
				continue
			}
			if m := document.FindStringSubmatch(line); m != nil {
				end, line = m[1], strings.Replace(line, m[0], "", 1)
			}
			for _, words := range simpleCommands(redirect.ReplaceAllString(line, "")) {
				for len(words) > 0 && (setting.MatchString(words[0]) || slices.Contains([]string{"sudo", "go", "run"}, words[0])) {
					words = words[1:]
				}
				if len(words) > 0 && path.Base(words[0]) == program {
					all = append(all, words[1:])
				}
			}
		}
	}
	return all
}

// simpleCommands returns the words of each simple command of a line, without quotes and comments.
func simpleCommands(line string) (all [][]string) {
	var words []string
	var word strings.Builder
	started := false // a word has begun, perhaps an empty one: ''
	endWord := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	quote := rune(0)
	for _, r := range line {
		switch {
		case r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, started = r, true
		case r == '#' && !started:
			endCommand()
			return all
		case r == ' ' || r == '\t':
			endWord()
		case strings.ContainsRune("|;&()<>", r):
			endCommand()
		default:
			started = true
			word.WriteRune(r)
		}
	}
	endCommand()
	return all
}
