package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// longFuzz is the time from which the inputs of earlier runs, in the go command's cache, are tried
// first. That takes up to a minute before any other input is tried.
const longFuzz = time.Minute

// fuzzAll runs every fuzz target of the packages for the given time. A target counts as one test.
// The targets of a package share one binary.
func fuzzAll(each string, packages []string) counts {
	failed := func(err error) counts {
		fmt.Fprintln(os.Stderr, err)
		return counts{failed: 1}
	}
	duration, err := time.ParseDuration(each)
	if err != nil {
		return failed(err)
	}
	all, err := findTests(packages)
	if err != nil {
		return failed(err)
	}
	dir, err := os.MkdirTemp("", "gotest-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	inputs := dir // of earlier runs: none
	if duration >= longFuzz {
		cache, err := exec.Command("go", "env", "GOCACHE").Output()
		if err != nil {
			return failed(fmt.Errorf("go env GOCACHE: %w", err))
		}
		inputs = strings.TrimSpace(string(cache))
	}
	var c counts
	for _, p := range all {
		if len(p.fuzz) == 0 {
			continue
		}
		binary := filepath.Join(dir, "fuzz.test")
		if out, err := exec.Command("go", "test", "-c", "-fuzz", ".", "-o", binary, p.path).CombinedOutput(); err != nil {
			fmt.Printf("%sfail %s: it does not build: %v\n", out, p.path, err)
			c.failed++
			continue
		}
		corpus := filepath.Join(inputs, "fuzz", p.path)
		for _, target := range p.fuzz {
			start := time.Now()
			out, err := fuzz(binary, p.dir, corpus, target, duration)
			if err != nil && endedBadly(out) {
				out, err = fuzz(binary, p.dir, corpus, target, duration)
			}
			if err == nil && executions(out) == "" { // a busy machine, which has only tried the seeds
				out, err = fuzz(binary, p.dir, corpus, target, 10*duration)
			}
			if err == nil && executions(out) == "" {
				err = fmt.Errorf("no input was tried in %v", 10*duration)
			}
			if err != nil {
				fmt.Printf("%sfail %s %s: %v\n", out, p.path, target, err)
				c.failed++
				continue
			}
			fmt.Printf("pass %s %s: %s in %.0f s\n", p.path, target, executions(out), time.Since(start).Seconds())
			c.passed++
		}
	}
	return c
}

// fuzz runs one target, in the folder of its package. The flags are those that go test passes to a
// binary, with two workers. It limits the time to minimize an interesting input: by default that is
// up to a minute, in which the fuzzer tries no other input.
func fuzz(binary, dir, corpus, target string, each time.Duration) (string, error) {
	cmd := exec.Command(binary, "-test.run", "^$", "-test.fuzz", "^"+target+"$", "-test.fuzztime", each.String(),
		"-test.fuzzminimizetime", "10x", "-test.fuzzcachedir", corpus, "-test.parallel", "2", "-test.paniconexit0")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// endedBadly reports whether the fuzzer failed at the end of its time without an input: it
// sometimes reports its own deadline as an error of the target (go.dev/issue/75804).
func endedBadly(out string) bool {
	return strings.Contains(out, "\n    context deadline exceeded\n") && !strings.Contains(out, "Failing input")
}

// executions returns the last count of executions that go test -fuzz printed, if there is one.
func executions(out string) string {
	i := strings.LastIndex(out, "execs: ")
	if i < 0 {
		return ""
	}
	n, _, _ := strings.Cut(out[i:], " (")
	return n
}
