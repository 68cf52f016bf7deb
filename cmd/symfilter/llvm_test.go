package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

const llvmSymbolizer = "llvm-symbolizer-19"

// outcome is the output and the exit code of a program.
type outcome struct {
	stdout, stderr string
	code           int
}

func (o outcome) String() string { return fmt.Sprintf("%d %q %q", o.code, o.stderr, o.stdout) }

// runProgram runs a program without colours and servers, and without options from the environment.
func runProgram(t *testing.T, dir, stdin string, env []string, name string, args ...string) (o outcome) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DEBUGINFOD_") && !strings.HasPrefix(v, "LLVM_") && !strings.HasPrefix(v, "SYMFILTER_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		o.code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	o.stdout, o.stderr = stdout.String(), stderr.String()
	return o
}

// Standard output, standard error and the exit code must equal those of llvm-symbolizer.
func TestWordsAreThoseOfLLVM(t *testing.T) {
	fuzztest.WithoutRace(t)
	testenv.Need(t, llvmSymbolizer)
	crash, err := os.ReadFile("../../testdata/crash.log")
	if err != nil {
		t.Fatal(err)
	}
	debug, err := filepath.Abs("../../testdata/debug")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"response": "--basenames \"a b\"\n'--no-demangle' @nested",
		"nested":   `--functions=sh\ort`,
		"wrong":    "--bogus",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	log := string(crash) + "{{{bt:0}}}\n{{{symbol:_Z1fv}}} {{{pc:zero}}} \x1b[31mred\x1b[0m"

	for _, words := range []string{
		"", "--basenames", "-s", "--relativenames", "--basenames --relativenames", "--relativenames -s",
		"--functions", "--functions=none", "--functions=short", "--functions=linkage", "--functions=what", "--functions=", "--functions short",
		"-f", "-f=none", "-f=", "-fshort", "-f short", "--functions=none -f",
		"--demangle", "--no-demangle", "-C", "--no-demangle -C", "-C --no-demangle", "-demangle=true", "-demangle=false", "--demangle=false",
		"--color", "--color=always", "--color=never", "--color=auto", "--color=what", "--color=", "--color never", "--color --color=never",
		"--color=never --color", "--color=always --color=never", "-color", "--colour=always",
		"--debug-file-directory=nowhere", "--debug-file-directory nowhere", "--debug-file-directory", "--debug-file-directory=",
		"--dwp=x", "--dwp x", "--dwp", "--dwp=", "--obj=x", "--obj x", "--obj", "--obj=", "--objx", "--exe=x", "--exe x", "--exx=1", "-e x", "-ex", "-e=x", "-e", "-exe=x", "-ee",
		"--debuginfod --no-debuginfod", "--no-debuginfod", "-a", "--addresses", "--print-address", "-i", "--inlines", "--no-inlines",
		"--inlining", "--inlining=true", "--inlining=false", "--inlining=tru", "--inlining=maybe", "-p", "--pretty-print", "--verbose", "--verbos",
		"--adjust-vma=1", "--adjust-vma 0x1", "--adjust-vma=0b1", "--adjust-vma=010", "--adjust-vma=09", "--adjust-vma=1_0", "--adjust-vma=zz", "--adjust-vma zz", "--adjust-vma=-1", "--adjust-vma=", "--adjust-vma=z --adjust-vma=1",
		"--cache-size=1", "--cache-size=z", "--cache-size=z --adjust-vma=z", "--print-source-context-lines=1", "--print-source-context-lines=-1",
		"--print-source-context-lines=99999999999", "--print-source-context-lines=x", "--default-arch=x", "--default-arch x", "--dsym-hint=x", "--dsym-hint x.dSYM --dsym-hint=y", "--dsym-hint=x --adjust-vma=q",
		"--fallback-debug-path=x", "--output-style=JSON", "--output-style what", "--relative-address", "--untag-addresses", "--no-untag-addresses", "--dia",
		"--build-id=abcd", "--build-id=zz --obj=x", "--use-symbol-table",
		"-sC", "-asi", "-sf=none", "-s=1", "-C=1", "-ie", "-iex", "-fx", "-bogus", "-V",
		"--bogus", "--bogus --what", "--bogus -e", "--", "-- --bogus", "-", "- x", "address 0x1", "--filter-markup", "--filter-markup=1", "--filter-marku", "--hlep", "--e=x", "--Basenames", "--basenames=false", "--no-inline", "--function", "--functio=short",
		"@response", "@wrong", "@missing",
	} {
		words := strings.Fields(words)
		args := append([]string{"--filter-markup", "--debug-file-directory=" + debug}, words...)
		want := runProgram(t, dir, log, nil, llvmSymbolizer, args...)
		got := runProgram(t, dir, log, []string{asCommand + "=1"}, os.Args[0], args...)
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", words, got, want)
		}
	}

	for _, words := range []string{"--basenames -C", `--debug-file-directory="a b" --no-demangle`, "--bogus 'x y' --no-dem\\angl", "--functions='none'", "@response", ""} {
		for _, args := range [][]string{{"--filter-markup"}, {"--filter-markup", "--demangle", "-f", "--debug-file-directory=" + debug}} {
			want := runProgram(t, dir, log, []string{llvmEnv + "=" + words}, llvmSymbolizer, args...)
			got := runProgram(t, dir, log, []string{llvmEnv + "=" + words, asCommand + "=1"}, os.Args[0], args...)
			if got != want {
				t.Errorf("%s=%q, %q:\n got %s\nwant %s", llvmEnv, words, args, got, want)
			}
		}
	}
}
