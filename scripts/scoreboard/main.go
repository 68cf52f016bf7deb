// Scoreboard runs commands that resolve backtraces over the logs of testdata/backtraces, and
// prints the number of frames that each command names: go run ./scripts/scoreboard
// NAME=COMMAND...
//
// A COMMAND runs in a shell. The log is its standard input, and $KIT the folder of the
// programs. Each log is read twice. With the programs that printed it, all frames must be in
// the output, in the order of the truth. With programs of another build at the same paths, no
// frame may be named.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	kit := flag.String("kit", "testdata/backtraces", "folder of the kit")
	flag.Parse()
	if err := run(os.Stdout, *kit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "scoreboard:", err)
		os.Exit(1)
	}
}

// A producer describes a log of the kit, and the program that printed it.
type producer struct {
	Name    string
	What    string // program that prints such logs
	Program string // its expected frames are in truth/PROGRAM
	Real    bool   // the producer printed the log; otherwise only the form is the producer's
	Reverse bool   // the outermost frame comes first
}

// A tool is a command that is scored.
type tool struct{ name, command string }

// A score holds the results of one tool for all logs.
type score struct {
	cells               []string // by producer: right frames, and all frames of the truth
	whole, right, other int      // complete logs; right frames; frames named by another build
}

func run(w io.Writer, kit string, args []string) error {
	var tools []tool
	for _, arg := range args {
		name, command, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=COMMAND", arg)
		}
		tools = append(tools, tool{name, command})
	}
	var producers []producer
	data, err := os.ReadFile(filepath.Join(kit, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(data, &producers)
	}
	if err != nil {
		return err
	}
	scores, total := make([]score, len(tools)), 0
	for _, p := range producers {
		want, err := truthOf(kit, p)
		if err != nil {
			return err
		}
		total += len(want)
		for i, t := range tools {
			if err := scores[i].add(kit, p, t, want); err != nil {
				return err
			}
		}
	}
	print(w, producers, tools, scores, total)
	return nil
}

// truthOf returns the expected frames of a log in their order. Each frame is a line of the form
// FUNCTION FILE:LINE.
func truthOf(kit string, p producer) (frames []string, err error) {
	f, err := os.Open(filepath.Join(kit, "truth", p.Program))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		frames = append(frames, lines.Text())
	}
	if p.Reverse {
		slices.Reverse(frames)
	}
	return frames, lines.Err()
}

// add runs a tool over a log, once with each build of the programs, and adds the results to s.
func (s *score) add(kit string, p producer, t tool, want []string) error {
	right, err := named(kit, "programs", p, t)
	if err != nil {
		return err
	}
	other, err := named(kit, "other", p, t)
	if err != nil {
		return err
	}
	n := common(want, right)
	s.cells = append(s.cells, fmt.Sprintf("%d/%d", n, len(want)))
	s.right += n
	s.other += len(other)
	if n == len(want) {
		s.whole++
	}
	return nil
}

// place matches the name of a C++ source file and a line number; function matches a word that may
// be a function's name. Such words come before the place, on its line of output or on the previous
// line. sources lists the source files of the kit.
var (
	place    = regexp.MustCompile(`\b(\w+\.(?:cc|h))(?: ?: ?|", "source_line": )(\d+)`)
	function = regexp.MustCompile(`\w+`)
	sources  = []string{"backtrace.cc", "emit.cc", "fault.cc", "inventory.h", "leaf.h", "ledger.cc", "pool.h", "traces.cc"}
)

// A namedFrame is a place in a tool's output, and the words that may be its function.
type namedFrame struct {
	place string
	words []string
}

// named returns the frames that a tool names in the log of p, with the programs of a build.
func named(kit, build string, p producer, t tool) (frames []namedFrame, err error) {
	programs, err := filepath.Abs(filepath.Join(kit, build))
	if err != nil {
		return nil, err
	}
	log, err := os.ReadFile(filepath.Join(kit, "logs", p.Name))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", "-c", t.command)
	cmd.Env = append(os.Environ(), "KIT="+programs)
	cmd.Stdin = bytes.NewReader(bytes.ReplaceAll(log, []byte("@DIR@"), []byte(programs)))
	cmd.Stderr = io.Discard
	out, err := cmd.Output()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	previous := ""
	for line := range strings.Lines(string(out)) {
		at := 0
		for _, m := range place.FindAllStringSubmatchIndex(line, -1) {
			if slices.Contains(sources, line[m[2]:m[3]]) {
				words := function.FindAllString(previous+" "+line[at:m[0]], -1)
				frames = append(frames, namedFrame{line[m[2]:m[3]] + ":" + line[m[4]:m[5]], words})
				at = m[1]
			}
		}
		previous = line
	}
	return frames, nil
}

// common returns the length of the longest common subsequence of want and got.
func common(want []string, got []namedFrame) int {
	lengths := make([]int, len(got)+1)
	for _, w := range want {
		name, at, _ := strings.Cut(w, " ")
		diagonal := 0
		for j, g := range got {
			above := lengths[j+1]
			if g.place == at && slices.Contains(g.words, name) {
				lengths[j+1] = diagonal + 1
			} else {
				lengths[j+1] = max(above, lengths[j])
			}
			diagonal = above
		}
	}
	return lengths[len(got)]
}

// print prints the scores as tables of Markdown.
func print(w io.Writer, producers []producer, tools []tool, scores []score, total int) {
	fmt.Fprintf(w, "| tool | logs with all frames, of %d | frames, of %d | frames named by another build |\n|---|---|---|---|\n", len(producers), total)
	for i, t := range tools {
		s := &scores[i]
		fmt.Fprintf(w, "| %s | %d | %d | %d |\n", t.name, s.whole, s.right, s.other)
	}
	fmt.Fprint(w, "\n| log |")
	for _, t := range tools {
		fmt.Fprintf(w, " %s |", t.name)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(tools)))
	for k, p := range producers {
		fmt.Fprintf(w, "| %s |", p.Name)
		for i := range tools {
			fmt.Fprintf(w, " %s |", scores[i].cells[k])
		}
		fmt.Fprintln(w)
	}
}
