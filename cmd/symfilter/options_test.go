package main

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/wording"
)

// The first page of help must fit a screen of 80 columns and 44 lines. No page may be wider, and
// most topics must fit two screens.
func TestHelpFitsAScreen(t *testing.T) {
	line := commandLine()
	screen := line.Page(line.Commands[0])
	if n := strings.Count(screen, "\n"); n > 44 {
		t.Errorf("%d lines, want at most 44", n)
	}
	all := []string{screen, line.FlagsPage(), llvmHelp()}
	for _, cmd := range line.Commands {
		all = append(all, line.Page(cmd))
	}
	for _, page := range topics() {
		if n := strings.Count(line.TopicPage(&page), "\n"); n > 2*44 && page.Name != cli.AllFlags && page.Name != "dialects" && page.Name != "gates" { // two have lists of kinds
			t.Errorf("topic %s: %d lines, want at most two screens", page.Name, n)
		}
		if page.About == "" || !strings.Contains(helpText, "\n  "+page.Name+" ") || !strings.Contains(helpText, " "+page.About+"\n") {
			t.Errorf("topic %s: symfilter help help does not list it", page.Name)
		}
		all = append(all, line.TopicPage(&page))
	}
	for _, page := range all {
		for line := range strings.Lines(page) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%d columns, want at most 80: %s", n, line)
			}
		}
	}
}

// Each flag must have a text, a command and, unless it is a switch, a metavariable. Otherwise help
// and reference would be incomplete.
func TestTableOfFlagsIsComplete(t *testing.T) {
	seen := make(map[string]cli.CommandSet)
	for o := range commandLine().Flags() {
		value := o.Value(newConfig())
		_, isMarkup := o.Field(newConfig()).(markupFlag)
		isSwitch := value.Type() == "bool" || isMarkup
		switch {
		case o.Text == "" || o.In == 0:
			t.Errorf("--%s: no text, or no command has it", o.Name)
		case isSwitch != (o.Metavar == ""):
			t.Errorf("--%s: is a switch: %t, but its metavar is %q", o.Name, isSwitch, o.Metavar)
		case o.On&^o.In != 0:
			t.Errorf("--%s: on the page of a command that does not have it", o.Name)
		case seen[o.Name]&o.In != 0:
			t.Errorf("--%s: twice in a command", o.Name)
		case strings.HasSuffix(o.Text+o.More, ".") && !strings.HasSuffix(o.Text, "..."):
			t.Errorf("--%s: remarks follow its text: no full stop", o.Name)
		}
		seen[o.Name] |= o.In
		if o.Words == nil {
			continue
		}
		for _, word := range o.Words() {
			if err := value.Set(word); err != nil || !strings.Contains(o.FullText(), word) {
				t.Errorf("--%s: does not take %q (%v), or its text does not name it", o.Name, word, err)
			}
		}
	}
}

// The first words, the style in the environment and the files in the current folder must select the
// command.
func TestDispatch(t *testing.T) {
	t.Chdir(t.TempDir())
	dispatches := func(line, style string) string {
		d := dispatch(strings.Fields(line), func(name string) (string, bool) { return style, style != "" && name == "SYMFILTER_STYLE" })
		got := d.command.Name + ":" + strings.Join(d.args, " ")
		if d.asked != "" {
			got = "asked " + got
		}
		if d.llvm {
			got = "llvm " + got
		}
		return got
	}
	for _, test := range []struct{ line, style, want string }{
		{"", "", ":"},
		{"app.log", "", ":app.log"},
		{"valgrind -q x", "", "valgrind:-q x"},
		{"-q valgrind", "", ":-q valgrind"},
		{"./man", "", ":./man"},
		{"help", "", "help:"},
		{"help doctor", "", "help:doctor"},
		{"help a b", "", "help:a b"},
		{"-s x --style=llvm", "", "llvm :-s x --style=llvm"},
		{"--style llvm --style symfilter", "", ":--style llvm --style symfilter"},
		{"--filter-markup", "", "llvm :--filter-markup"},
		{"--filter-markup=false", "llvm", ":--filter-markup=false"},
		{"--filter-markup=true", "", "llvm :--filter-markup=true"},
		{"-- --style=llvm", "", ":-- --style=llvm"},
		{"", "llvm", "llvm :"},
		{"man", "llvm", "man:"},
		{"__complete doctor", "", "asked :doctor"},
		{"__complete doctor x", "llvm", "asked doctor:x"},
		{"__completeNoDesc --ou", "", "asked :--ou"},
	} {
		if got := dispatches(test.line, test.style); got != test.want {
			t.Errorf("symfilter %s: got %q, want %q", test.line, got, test.want)
		}
	}
	if err := os.WriteFile("help", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{"help": ":help", "help a b": ":help a b", "help x": ":help x", "help doctor": "help:doctor"} {
		if got := dispatches(line, ""); got != want {
			t.Errorf("symfilter %s, with a log called help: got %q, want %q", line, got, want)
		}
	}
}

func TestColorMode(t *testing.T) {
	const keep, always, never = filter.ColorKeep, filter.ColorAlways, filter.ColorNever
	names := map[filter.Color]string{keep: "keep", always: "always", never: "never"}
	for _, test := range []struct {
		flag     string
		terminal bool
		env      string
		want     filter.Color
	}{
		{"", false, "", keep},
		{"auto", false, "", keep},
		{"auto", true, "", always},
		{"auto", true, "TERM=dumb", never},
		{"auto", false, "TERM=dumb", keep},
		{"auto", true, "TERM=xterm", always},
		{"auto", true, "NO_COLOR=1", never},
		{"auto", false, "NO_COLOR=1", never},
		{"auto", false, "CLICOLOR_FORCE=1", always},
		{"auto", false, "CLICOLOR_FORCE=0", keep},
		{"auto", false, "CLICOLOR_FORCE=1 NO_COLOR=1 TERM=dumb", always},
		{"always", false, "NO_COLOR=1 TERM=dumb", always},
		{"never", true, "CLICOLOR_FORCE=1", never},
	} {
		env := make(map[string]string)
		for _, pair := range strings.Fields(test.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		got := colorWhen(test.flag).mode(test.terminal, func(name string) string { return env[name] })
		if got != test.want {
			t.Errorf("--color=%s, terminal %v, %q: got %s, want %s", test.flag, test.terminal, test.env, names[got], names[test.want])
		}
	}
}

func TestByteSize(t *testing.T) {
	for _, test := range []struct {
		text string
		want int64 // -1: an error
	}{
		{"16777216", 16 << 20},
		{"512M", 512 << 20},
		{"512m", 512 << 20},
		{"512MB", 512 << 20},
		{"512MiB", 512 << 20},
		{"2G", 2 << 30},
		{"1T", 1 << 40},
		{"20000k", 20000 << 10},
		{"8M", -1},
		{"0", -1},
		{"", -1},
		{"M", -1},
		{"-1G", -1},
		{"1.5G", -1},
		{"1GG", -1},
		{"1GIBIB", -1},
		{"1 G", -1},
		{"9000000T", -1},
		{"99999999999999999999", -1},
	} {
		var b memorySize
		got := int64(-1)
		if err := b.Set(test.text); err == nil {
			got = int64(b)
		}
		if got != test.want {
			t.Errorf("%q: got %d, want %d", test.text, got, test.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"plain, with ümlaut", "plain, with ümlaut"},
		{"two\nlines", `two\x0alines`},
		{"\x1b]0;title\a", `\x1b]0;title\x07`},
		{"\u202egnp.exe", `\u202egnp.exe`},
		{"c1 \u009b31m", `c1 \u009b31m`},
		{"tag \U000e0041", `tag \U000e0041`},
		{"broken \xff\xc3", `broken \xff\xc3`},
		{"\xffalone", `\xffalone`},
		{"itself \ufffd", "itself \ufffd"},
	} {
		if got := wording.Line(test.text); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestValuesOfFlagsMayBeAnyBytes(t *testing.T) {
	hostile := []string{"", "\x00", "\xff", "\xff\xfe", "1\xff", "\u0131", "\u0149k", "5\ufb01", "K", "-", "-1", "0x", "1e9", "\u202e1", "{{{", "(", "%s", strings.Repeat("9", 10_000)}
	for o := range commandLine().Flags() {
		for _, value := range hostile {
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("--%s=%.20q: %v", o.Name, value, p)
					}
				}()
				o.Value(newConfig()).Set(value)
			}()
		}
	}
	for in, want := range map[string]byteSize{"512M": 512 << 20, "2GiB": 2 << 30, "1kb": 1 << 10, "7": 7, "3t": 3 << 40} {
		if got := byteSize(0); got.Set(in) != nil || got != want {
			t.Errorf("%s: got %d, want %d", in, got, want)
		}
	}
}
