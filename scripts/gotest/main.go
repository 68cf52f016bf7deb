// Gotest runs the tests of packages. At the end it prints how many passed, failed and were skipped,
// also if a test process died.
//
//	gotest [go test flags] PACKAGE...          go test: output of failed tests, and of skipped ones
//	gotest -fuzz DURATION PACKAGE...           each fuzz target of the packages for that time
//
// Its last line is "N passed, N failed, N skipped"; it exits 1 if anything failed, 2 if it was
// called wrongly. Subtests count as tests.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: gotest [go test flags] PACKAGE... | gotest -fuzz DURATION PACKAGE...")
		os.Exit(2)
	}
	var c counts
	if args[0] == "-fuzz" && len(args) > 2 {
		c = fuzzAll(args[1], args[2:])
	} else {
		c = run(args)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", c.passed, c.failed, c.skipped)
	if c.failed > 0 {
		os.Exit(1)
	}
}

type counts struct{ passed, failed, skipped int }

// event is a line of go test -json (go doc test2json) or go build -json (go help buildjson).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// run runs go test with args. It prints a line for each package, and the output of each test that
// did not pass.
func run(args []string) counts {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return counts{failed: 1}
	}
	c := report(out, os.Stdout)
	if err := cmd.Wait(); err != nil && c.failed == 0 {
		fmt.Fprintln(os.Stderr, "go test:", err)
		c.failed++
	}
	return c
}

// report reads the events of go test -json from r, and writes the summary of each package to w.
func report(r io.Reader, w io.Writer) counts {
	var c counts
	type key struct{ pkg, test string }
	output := map[key]*strings.Builder{} // of tests and packages that have not ended
	perPackage := map[string]*counts{}   // of packages that have not ended
	of := func(pkg string) *counts {
		if perPackage[pkg] == nil {
			perPackage[pkg] = new(counts)
		}
		return perPackage[pkg]
	}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				w.Write(line) // not an event: a message of the go command
				continue
			}
			k := key{e.Package, e.Test}
			switch e.Action {
			case "output":
				if output[k] == nil {
					output[k] = new(strings.Builder)
				}
				output[k].WriteString(e.Output)
			case "build-output":
				io.WriteString(w, e.Output)
			case "pass", "fail", "skip":
				text := ""
				if output[k] != nil {
					text = output[k].String()
					delete(output, k)
				}
				if e.Test != "" {
					n := of(e.Package)
					switch e.Action {
					case "pass":
						n.passed++
					case "skip":
						n.skipped++
						io.WriteString(w, text)
					case "fail":
						n.failed++
						io.WriteString(w, text)
					}
					continue
				}
				n := of(e.Package)
				if e.Action == "fail" {
					// First the output of tests that did not end: the process died in one of them.
					for open, said := range output {
						if open.pkg == e.Package {
							io.WriteString(w, said.String())
							delete(output, open)
						}
					}
					io.WriteString(w, text)
					if n.failed == 0 {
						n.failed++ // it did not build, or died outside of any test
					}
				}
				if *n != (counts{}) {
					fmt.Fprintf(w, "%s %s: %d passed, %d failed, %d skipped in %.1f s\n", e.Action, e.Package, n.passed, n.failed, n.skipped, e.Elapsed)
				}
				c.passed, c.failed, c.skipped = c.passed+n.passed, c.failed+n.failed, c.skipped+n.skipped
				delete(perPackage, e.Package)
			}
		}
		if err != nil {
			break
		}
	}
	// A package without an end: the go command was killed.
	for pkg, n := range perPackage {
		fmt.Fprintf(w, "fail %s: no end\n", pkg)
		c.passed, c.failed, c.skipped = c.passed+n.passed, c.failed+n.failed+1, c.skipped+n.skipped
	}
	return c
}

// fuzzAll runs every fuzz target of the packages for the given time. A target counts as one test.
func fuzzAll(each string, packages []string) counts {
	var c counts
	list, err := exec.Command("go", append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}, packages...)...).Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "go list:", err)
		return counts{failed: 1}
	}
	for _, pkg := range strings.Fields(string(list)) {
		targets, err := exec.Command("go", "test", "-list", "^Fuzz", pkg).CombinedOutput()
		if err != nil {
			fmt.Printf("%sfail %s: its fuzz targets could not be listed\n", targets, pkg)
			c.failed++
			continue
		}
		for _, target := range strings.Fields(string(targets)) {
			if !strings.HasPrefix(target, "Fuzz") {
				continue
			}
			start := time.Now()
			out, err := fuzz(each, target, pkg)
			if err != nil && endedBadly(string(out)) {
				out, err = fuzz(each, target, pkg)
			}
			if err != nil {
				fmt.Printf("%sfail %s %s\n", out, pkg, target)
				c.failed++
				continue
			}
			fmt.Printf("pass %s %s: %s in %.0f s\n", pkg, target, executions(string(out)), time.Since(start).Seconds())
			c.passed++
		}
	}
	return c
}

// fuzz runs one target. It limits the time to minimize an interesting input: by default that is up
// to a minute, in which the fuzzer tries no other input.
func fuzz(each, target, pkg string) ([]byte, error) {
	return exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", each, "-fuzzminimizetime", "10x", "-parallel", "2", pkg).CombinedOutput()
}

// endedBadly reports whether the fuzzer failed at the end of its time without an input: it
// sometimes takes its own deadline for an error of the target (go.dev/issue/75804).
func endedBadly(out string) bool {
	return strings.Contains(out, "\n    context deadline exceeded\n") && !strings.Contains(out, "Failing input")
}

// executions returns the last count of executions that go test -fuzz printed.
func executions(out string) string {
	i := strings.LastIndex(out, "execs: ")
	if i < 0 {
		return "execs: none"
	}
	n, _, _ := strings.Cut(out[i:], " (")
	return n
}
