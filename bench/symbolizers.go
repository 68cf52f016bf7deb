//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// A symbolizer is a program that symfilter replaces under its name. It is started with pprof's
// flags, so that an answer begins with the address and includes inlined calls.
type symbolizer struct {
	program string
	name    string // name under which symfilter is started
	flags   []string
	most    int // number of random addresses that takes some minutes
}

func symbolizers() []symbolizer {
	return []symbolizer{
		{reference, "llvm-symbolizer", []string{"-a", "--demangle", "-e"}, 100_000},
		{"llvm-addr2line-19", "llvm-addr2line", []string{"-aifC", "-e"}, 100_000},
		{"addr2line", "addr2line", []string{"-aifC", "-e"}, 1000},
		{"eu-addr2line", "eu-addr2line", []string{"-aifC", "-e"}, 1000},
	}
}

// standIns returns the rows that compare other symbolizers with symfilter, started under their
// names.
func standIns(bin, name string) (rows []workload) {
	for _, s := range symbolizers() {
		as := ", " + name + ", as " + s.name
		one := "an address as an argument" + as
		row := func(name, of string, n int, commands func(b *binaries, command, out string) (other, mine *contender)) {
			w := workload{name: name, of: of, commands: commands, against: s.program, goals: "wall 1, peak 1"}
			if of == "" {
				w.log = addresses(bin, n)
			}
			rows = append(rows, w)
		}
		row(one, "", 1, s.argument(bin, one))
		row("an address in a session"+as, one, 1, s.session(bin))
		row("16 cold addresses in a session"+as, "", 16, s.session(bin))
		row(fmt.Sprintf("%d random addresses in a session%s", s.most, as), "", s.most, s.session(bin))
	}
	return rows
}

// addresses returns a function that writes n random addresses of functions of the binary.
func addresses(bin string, n int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		c, err := b.code(bin, 0)
		if err != nil {
			return err
		}
		return create(path, func(w *logWriter) {
			for range n {
				w.printf("%#x\n", c.fresh()-c.base-1)
			}
		})
	}
}

// argument compares two commands that get an address as an argument. The address is in the log of
// the workload named row.
func (s symbolizer) argument(bin, row string) func(b *binaries, command, out string) (other, mine *contender) {
	return func(b *binaries, command, _ string) (other, mine *contender) {
		address, _ := os.ReadFile(b.logPath(row)) // if the file is missing, the later read fails
		return s.contenders(b, bin, command, strings.TrimSpace(string(address)))
	}
}

// session compares two commands that read addresses from standard input. Each answer is read before
// the next address is written.
func (s symbolizer) session(bin string) func(b *binaries, command, out string) (other, mine *contender) {
	return func(b *binaries, command, _ string) (other, mine *contender) {
		other, mine = s.contenders(b, bin, command)
		other.measure, mine.measure = inSession, inSession
		return other, mine
	}
}

func (s symbolizer) contenders(b *binaries, bin, command string, questions ...string) (other, mine *contender) {
	words := slices.Concat(s.flags, []string{b.bin(bin)}, questions)
	return contend(append([]string{s.program}, words...)...), contend(append([]string{command, "as", s.name}, words...)...)
}

// sentinel is an address that follows each address in a session, as in the sessions of pprof. No
// program has code there, so its answer marks the end of the previous answer.
const sentinel = "0xffffffffffffffff"

// inSession runs a symbolizer, sends it the addresses in a log one after the other, and returns the
// cost of the run.
func inSession(ctx context.Context, argv []string, log string) (cost, error) {
	questions, err := os.ReadFile(log)
	if err != nil {
		return cost{}, err
	}
	begin := time.Now()
	cmd, cleanup, err := prepare(ctx, argv, nil, nil)
	if err != nil {
		return cost{}, err
	}
	defer cleanup()
	if err := converse(cmd, string(questions)); err != nil {
		return cost{}, err
	}
	return costOf(cmd.ProcessState, time.Since(begin)), nil
}

// converse starts a command, sends it each line of questions, and waits for its end.
func converse(cmd *exec.Cmd, questions string) error {
	cmd.Stdin, cmd.Stdout = nil, nil // pipes
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	answers := bufio.NewReader(out)
	for question := range strings.Lines(questions) {
		if err = ask(in, answers, question); err != nil {
			break
		}
	}
	in.Close()
	_, drainErr := io.Copy(io.Discard, answers)
	endErr := cmd.Wait()
	if end, ok := errors.AsType[*exec.ExitError](endErr); ok && end.ExitCode() == 1 && err == nil {
		endErr = nil // eu-addr2line does not know the sentinel
	}
	return errors.Join(err, drainErr, endErr)
}

// ask writes a question, and reads its answer.
func ask(in io.Writer, answers *bufio.Reader, question string) error {
	if _, err := io.WriteString(in, question+sentinel+"\n"); err != nil {
		return err
	}
	for line := ""; line != sentinel+"\n"; {
		var err error
		if line, err = answers.ReadString('\n'); err != nil {
			return fmt.Errorf("answer to %q: %w", question, err)
		}
	}
	for range 2 { // the unknown function, and its unknown line
		if _, err := answers.ReadString('\n'); err != nil {
			return fmt.Errorf("answer to %s: %w", sentinel, err)
		}
	}
	return nil
}
