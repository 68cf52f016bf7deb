package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// longFuzz is the shortest fuzz time for which fuzzAll uses the inputs of earlier runs, from the go
// command's cache. Trying these inputs takes up to a minute.
const longFuzz = time.Minute

// fuzzAll runs every fuzz target of the packages for the given duration, and counts each target as
// one test. The targets of a package share one binary. A goroutine builds the binaries, and ends
// before fuzzAll returns.
func fuzzAll(each string, packages []string) counts {
	stop := func(err error) counts {
		fmt.Fprintln(os.Stderr, err)
		return counts{failed: 1}
	}
	duration, err := time.ParseDuration(each)
	if err != nil {
		return stop(err)
	}
	all, err := findTests(packages)
	if err != nil {
		return stop(err)
	}
	dir, err := os.MkdirTemp("", "gotest-")
	if err != nil {
		return stop(err)
	}
	defer os.RemoveAll(dir)
	inputs := dir // inputs of earlier runs: none
	if duration >= longFuzz {
		cache, err := exec.Command("go", "env", "GOCACHE").Output()
		if err != nil {
			return stop(fmt.Errorf("go env GOCACHE: %w", err))
		}
		inputs = strings.TrimSpace(string(cache))
	}
	var c counts
	for b := range buildFuzzed(all, dir) {
		p, binary := b.testPackage, b.binary
		if b.err != nil {
			fmt.Printf("%sfail %s: it does not build: %v\n", b.output, p.path, b.err)
			c.failed++
			continue
		}
		corpus := filepath.Join(inputs, "fuzz", p.path)
		for _, target := range p.fuzz {
			start := time.Now()
			out, err := fuzz(binary, p.dir, corpus, target, duration)
			v, why := judge(out, err)
			if v == again {
				fmt.Printf("%s %s runs again for %v: %s\n", p.path, target, 10*duration, why)
				out, err = fuzz(binary, p.dir, corpus, target, 10*duration)
				v, why = judge(out, err)
			}
			if v != passed {
				fmt.Printf("%s%sfail %s %s: %s\n", out.text, out.unfinished, p.path, target, why)
				c.failed++
				continue
			}
			fmt.Printf("pass %s %s: %s in %.0f s\n", p.path, target, executions(out.text), time.Since(start).Seconds())
			c.passed++
		}
		os.Remove(binary)
	}
	return c
}

// A fuzzBinary has the fuzz targets of a package, or the error of its build.
type fuzzBinary struct {
	testPackage
	binary string // path
	output []byte // output of the go command
	err    error
}

// buildFuzzed sends the binary of each package with fuzz targets, in order. Its goroutine
// builds a binary while the targets of the previous one run. The linker takes most of the time
// of a build, on one processor.
func buildFuzzed(all []testPackage, dir string) <-chan fuzzBinary {
	built := make(chan fuzzBinary)
	go func() {
		defer close(built)
		for i, p := range all {
			if len(p.fuzz) > 0 {
				b := fuzzBinary{testPackage: p, binary: filepath.Join(dir, fmt.Sprintf("fuzz%d.test", i))}
				b.output, b.err = exec.Command("go", "test", "-c", "-fuzz", ".", "-o", b.binary, p.path).CombinedOutput()
				built <- b
			}
		}
	}()
	return built
}

// fuzz runs one target, in the folder of its package. It passes the flags of go test to the
// binary, with two workers. It bounds the runs that minimize an interesting input: by default
// they take up to a minute, in which the fuzzer tries no other input.
func fuzz(binary, dir, corpus, target string, each time.Duration) (output, error) {
	unfinished, err := os.MkdirTemp(filepath.Dir(binary), "unfinished-")
	if err != nil {
		return output{}, err
	}
	cmd := exec.Command(binary, "-test.run", "^$", "-test.fuzz", "^"+target+"$", "-test.fuzztime", each.String(),
		"-test.fuzzminimizetime", "10x", "-test.fuzzcachedir", corpus, "-test.parallel", "2", "-test.paniconexit0")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), unfinishedVariable+"="+unfinished)
	text, err := cmd.CombinedOutput()
	out := output{text: string(text)}
	records, listed := os.ReadDir(unfinished)
	if listed != nil {
		return out, listed
	}
	for _, r := range records {
		b, failed := os.ReadFile(filepath.Join(unfinished, r.Name()))
		if failed != nil {
			return out, failed
		}
		out.unfinished += string(b)
	}
	return out, err
}

// unfinishedVariable is the environment variable with the folder of fuzztest's records.
const unfinishedVariable = "FUZZTEST_UNFINISHED"

// An output has the texts that a run of a fuzz target wrote.
type output struct {
	text       string // standard output and standard error of the fuzzer
	unfinished string // a line for each input that did not end
}

type verdict int

const (
	passed verdict = iota
	failed
	again // repeat the run, for longer
)

// deadline matches the whole output of a run that found nothing, but reports the end of its
// time as an error (go.dev/issue/75804). A failing input leaves other lines, even if the fuzzer
// was minimizing it at the end.
var deadline = regexp.MustCompile(`^(?:fuzz: elapsed: .*\n|warning: .*\n)*--- FAIL: \w+ \([0-9.]+s\)\n    context deadline exceeded\n(?:FAIL\n)?$`)

// judge returns the verdict on a run, and the reason if the run did not pass. err is the error of
// the process.
//
// A run fails if an input exceeded the bounds of fuzztest. The fuzzer does not report this if it
// happens after the end of the run. If an input is unfinished but within the bounds, the fuzzer
// killed the process two seconds after the end. On a busy machine, that may happen with any input,
// so the run is repeated.
func judge(out output, err error) (verdict, string) {
	switch {
	case err != nil && !deadline.MatchString(out.text):
		return failed, err.Error()
	case strings.Contains(out.unfinished, "an input takes "):
		return failed, strings.TrimSuffix(out.unfinished, "\n")
	case out.unfinished != "":
		return again, strings.TrimSuffix(out.unfinished, "\n")
	case executions(out.text) == "": // a busy machine, which has only tried the seeds
		return again, "no input was tried"
	}
	return passed, ""
}

// executions returns the last count of executions that go test -fuzz printed, or "".
func executions(out string) string {
	i := strings.LastIndex(out, "execs: ")
	if i < 0 {
		return ""
	}
	n, _, _ := strings.Cut(out[i:], " (")
	return n
}
