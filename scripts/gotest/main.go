// Gotest runs the tests of packages. At the end it prints how many passed, failed and were skipped,
// even if a test process died.
//
//	gotest [go test flags] PACKAGE...          go test: output of failed tests, and of skipped ones
//	gotest -work [-flag=value...] PACKAGE...   the tests that call fuzztest.WithoutRace
//	gotest -fuzz DURATION PACKAGE...           each fuzz target of the packages for that time
//
// Its last line is "N passed, N failed, N skipped"; it exits with 2 without arguments, and with 1
// if anything failed, wrong arguments included. Subtests count as tests. Tests that are skipped
// under the race detector because -work runs them are not counted.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// runByWork is in the message of a test that is skipped because -work runs it.
const runByWork = "make work runs this test without the race detector"

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: gotest [-work] [go test flags] PACKAGE... | gotest -fuzz DURATION PACKAGE...")
		os.Exit(2)
	}
	// Tests start programs that are not make's jobs. With these variables, rustc would complain
	// about closed descriptors.
	for _, name := range []string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL"} {
		os.Unsetenv(name)
	}
	var c counts
	switch {
	case args[0] == "-fuzz" && len(args) > 2:
		c = fuzzAll(args[1], args[2:])
	case args[0] == "-work":
		c = runWork(args[1:])
	default:
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

// runWork runs the tests that are skipped under the race detector.
func runWork(args []string) counts {
	n := slices.IndexFunc(args, func(s string) bool { return !strings.HasPrefix(s, "-") })
	packages, err := findTests(args[max(n, 0):])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return counts{failed: 1}
	}
	return run(workArgs(args[:max(n, 0)], packages))
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

// report reads the events of go test -json from r. It writes the output of tests that did not
// pass, and a summary of each package, to w.
func report(r io.Reader, w io.Writer) counts {
	var c counts
	type key struct{ pkg, test string }
	output := map[key]*strings.Builder{} // output of unfinished tests and packages
	perPackage := map[string]*counts{}   // counts of unfinished packages
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
						if !strings.Contains(text, runByWork) {
							n.skipped++
							io.WriteString(w, text)
						}
					case "fail":
						n.failed++
						io.WriteString(w, text)
					}
					continue
				}
				n := of(e.Package)
				if e.Action == "fail" {
					// The process died in one of the unfinished tests: print their output first.
					for open, said := range output {
						if open.pkg == e.Package {
							io.WriteString(w, said.String())
							delete(output, open)
						}
					}
					io.WriteString(w, text)
					if n.failed == 0 {
						n.failed++ // the package did not build, or its process died outside of a test
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
	// The go command was killed before it reported the end of these packages.
	for pkg, n := range perPackage {
		fmt.Fprintf(w, "fail %s: no end\n", pkg)
		c.passed, c.failed, c.skipped = c.passed+n.passed, c.failed+n.failed+1, c.skipped+n.skipped
	}
	return c
}
