package main

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/filter"
)

// A screen is 80 columns and, on what people use, 44 lines.
func TestHelpFitsAScreen(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(help, "\n"), "\n")
	if len(lines) > 44 {
		t.Errorf("%d lines, want at most 44", len(lines))
	}
	for i, line := range append(lines, strings.Split(reference, "\n")...) {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("line %d has %d columns, want at most 80: %s", i+1, n, line)
		}
	}
}

func TestReferenceNamesEveryFlag(t *testing.T) {
	var c config
	set := pflag.NewFlagSet("symfilter", pflag.ContinueOnError)
	c.define(set)
	set.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(reference, "--"+f.Name) {
			t.Errorf("--%s is not in the reference", f.Name)
		}
		if f.Shorthand != "" && !strings.Contains(reference, "-"+f.Shorthand+", --"+f.Name) {
			t.Errorf("-%s is not in the reference", f.Shorthand)
		}
	})
}

// What the help says of a flag, the reference says too.
func TestHelpIsInTheReference(t *testing.T) {
	for line := range strings.Lines(help) {
		if names, text := splitFlag(strings.TrimSuffix(line, "\n")); names != "" && !strings.Contains(reference, names) {
			t.Errorf("not in the reference: %s %s", names, text)
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
		if got := oneLine(test.text); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

// What the kernel shows of other processes is hidden from a confined process: it
// is told by the paths that the command line names.
func TestPathsOfOtherProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only: /proc")
	}
	t.Chdir("/proc")
	for path, want := range map[string]bool{
		"/proc/1234/cwd/usr/lib/debug": true,
		"/proc/1234/fd/1":              true,
		"/proc/*/cwd/*.log":            true,
		"/proc/[1-9]*/cwd/log":         true,
		"/srv/../proc/1/root":          true,
		"./1234/root":                  true,
		"/proc/self/fd/3":              false,
		"/proc/thread-self/fd/3":       false,
		"/proc/kmsg":                   false,
		"/proc":                        false,
		"/process/1":                   false,
		"/dev/fd/63":                   false,
		"1234":                         false,
		"log":                          false,
		"":                             false,
	} {
		if got := ofOtherProcess(path); got != want {
			t.Errorf("%q: %t, want %t", path, got, want)
		}
	}
}
