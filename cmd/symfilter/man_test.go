package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestManPageNamesEveryFlag(t *testing.T) {
	var c config
	set := pflag.NewFlagSet("symfilter", pflag.ContinueOnError)
	c.define(set)
	page := manPage(reference, "1.2.3", "2026-11-20")
	set.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(page, troff("--"+f.Name)) {
			t.Errorf("--%s is not in the page", f.Name)
		}
	})
	for _, want := range []string{
		".TH SYMFILTER 1 \"2026-11-20\" \"symfilter 1.2.3\"\n",
		".TP\n.B \\-s, \\-\\-symbol\\-path PATH\nELF file, .zip, or folder at any depth (repeatable)\n",
		".SS How it runs\n",
		".SH FILES\n",
		".SH EXIT STATUS\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("not in the page: %q", want)
		}
	}
}

// What completions show is what the help says.
func TestEveryFlagIsDescribed(t *testing.T) {
	var c config
	set := pflag.NewFlagSet("symfilter", pflag.ContinueOnError)
	c.define(set)
	describe(set)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" {
			t.Errorf("--%s has no description", f.Name)
		}
	})
	if got, want := set.Lookup("debug-file-directory").Usage, "with .build-id (repeatable; /usr/lib/debug)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := set.Lookup("prefix-map").Usage, "source paths that begin with OLD (repeatable)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestManPageIsTroff(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("missing: groff") // not on every machine that builds; the page is the same everywhere
	}
	cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-P-cbou")
	cmd.Stdin = strings.NewReader(manPage(reference, "1.2.3", "2026-11-20"))
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	for _, want := range []string{"-s, --symbol-path PATH", `or for "-".`} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("not shown: %s", want)
		}
	}
}
