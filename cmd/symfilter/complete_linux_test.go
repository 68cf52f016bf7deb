package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// bashAfter enters typed at the prompt of bash in the current folder. It returns the arguments of
// the command that bash then runs. bash runs without the bash-completion package.
func bashAfter(t *testing.T, typed ...string) (words []string) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("missing: bash")
	}
	master, terminal := openTerminal(t)
	bin := t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	if err == nil {
		err = os.Symlink(self, filepath.Join(bin, "symfilter"))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, "--norc", "--noprofile", "-i")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(os.Environ(), "TERM=dumb", "INPUTRC=/dev/null", "HISTFILE=", "PS1=$ ", asCommand+"=1", "PATH="+bin+":"+os.Getenv("PATH"))
	var input strings.Builder
	input.WriteString("source <(symfilter completion bash)\r")
	for _, line := range typed {
		const home = "\x01"
		input.WriteString(line + home + "printf '\\nword=<%s>\\n' next \r")
	}
	input.WriteString("exit\r")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	if _, err := io.WriteString(master, input.String()); err != nil {
		t.Fatal(err)
	}
	shown, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) { // EIO is the end of a terminal
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("bash: %v", err)
	}
	if strings.Contains(string(shown), "not found") {
		t.Errorf("bash lacks a function:\n%s", shown)
	}
	all := ""
	for line := range strings.Lines(string(shown)) {
		if word, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "word=<"); ok {
			all += strings.TrimSuffix(word, ">") + "|"
		}
	}
	for line := range strings.SplitSeq(strings.Trim(all, "|"), "next|") {
		if line != "" {
			words = append(words, strings.Trim(line, "|"))
		}
	}
	return words
}

func TestBashCompletesWithoutPackages(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"crash.log", "valgrind.xml", "app log"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("docs", 0o700); err != nil {
		t.Fatal(err)
	}
	const tab, all = "\t", "\x1b*" // all inserts all completions
	tests := []struct{ typed, want string }{
		{"symfilter comp" + tab, "symfilter|completion"},
		{"symfilter do" + all, "symfilter|doctor|docs/"},
		{"symfilter val" + all, "symfilter|valgrind|valgrind.xml"},
		{"symfilter cra" + tab, "symfilter|crash.log"},
		{"symfilter docs" + tab, "symfilter|docs/"},
		{"symfilter app" + tab, "symfilter|app log"},
		{"symfilter x cra" + tab, "symfilter|x|crash.log"},
		{"symfilter help fo" + tab, "symfilter|help|follow"},
		{"symfilter help " + "f" + all, "symfilter|help|finding|findings|flags|follow"},
		{"symfilter --rotate" + tab, "symfilter|--rotate-wait"},
		{"symfilter --output=js" + tab, "symfilter|--output=json"},
		{"symfilter --output js" + tab, "symfilter|--output|json"},
		{"symfilter --color=" + all, "symfilter|--color=always|auto|never"},
		{"symfilter -s a:b cra" + tab, "symfilter|-s|a:b|crash.log"},
	}
	var typed []string
	for _, test := range tests {
		typed = append(typed, test.typed)
	}
	got := bashAfter(t, typed...)
	if len(got) != len(tests) {
		t.Fatalf("%d lines, want %d: %q", len(got), len(tests), got)
	}
	for i, test := range tests {
		if got[i] != test.want {
			t.Errorf("%q: got %q, want %q", test.typed, got[i], test.want)
		}
	}
}
