package main

import (
	"os"
	"strings"
	"testing"
)

func TestLinksOnTerminals(t *testing.T) {
	log, err := os.ReadFile("../../testdata/crash.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env, args string
		want      bool
	}{
		{"", "--source-url=vscode", true},
		{"", "--source-url=vscode --hyperlink=auto", true},
		{"", "--source-url=vscode --hyperlink=never", false},
		{"", "--source-url=none", false},
		{"", "--hyperlink=always", false}, // without a template there are no links
		{"", "--source-url=vscode --color=never", false},
		{"", "--source-url=vscode --color=never --hyperlink=always", true},
		{"", "--source-url=vscode --output=json", false},
		{"NO_COLOR=1", "--source-url=vscode", false},
		{"TERM=dumb", "--source-url=vscode", false},
		{"TERM=dumb", "--source-url=vscode --color=always", false},
		{"TERM=dumb", "--source-url=vscode --hyperlink=always", true},
	} {
		args := append([]string{"-q", "--debug-file-directory=../../testdata/debug", "--no-default-debug-directories"}, strings.Fields(tt.args)...)
		shown := onTerminal(t, string(log), strings.Fields(tt.env), args...)
		const link = "\x1b]8;;vscode://file/src/inventory/main.cc:59:10\x1b\\"
		if got := strings.Contains(shown, link); got != tt.want || !got && strings.Contains(shown, "]8;") {
			t.Errorf("%s symfilter %s: links: %v, want %v, in\n%q", tt.env, tt.args, got, tt.want, shown)
		}
	}
	// escape sequences of links in the log are shown, not obeyed
	shown := onTerminal(t, "\x1b]8;;http://x\x1b\\x\x1b]8;;\x1b\\ {{{symbol:_Z1fv}}}\n", nil, "--source-url=vscode")
	if strings.Contains(shown, "\x1b]") {
		t.Errorf("a link of the log: got %q", shown)
	}
}
