//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// format is the version of the file that -json writes. It changes if a member is removed or
// changes its meaning, not if one is added.
const format = "symfilter-bench 1"

// report is the file that -json writes.
type report struct {
	Format       string    `json:"format"`
	Time         time.Time `json:"time"`       // start of the run
	Processors   int       `json:"processors"` // processors that bench may use
	Architecture string    `json:"architecture"`
	Results      []result  `json:"results"`
}

// result holds the figures of one row: ratios, goals, and the costs of both commands.
type result struct {
	Workload  string       `json:"workload"`
	Against   string       `json:"against"` // name in the table
	Runs      int          `json:"runs"`    // runs of each side
	Wall      float64      `json:"wall"`    // ratios of symfilter's medians to the other side's
	CPU       float64      `json:"cpu"`
	Peak      float64      `json:"peak"`
	File      float64      `json:"file,omitempty"` // ratio of the bytes written; 0 if not compared
	Goals     []goalResult `json:"goals,omitempty"`
	Symfilter side         `json:"symfilter"`
	Other     side         `json:"other"`
}

// goalResult is a goal, and whether the row met it.
type goalResult struct {
	Figure string  `json:"figure"` // as in goal
	Most   float64 `json:"most"`
	Met    bool    `json:"met"`
	text   string
}

// side is one of the two commands of a row.
type side struct {
	Program string `json:"program"`           // base name
	Version string `json:"version,omitempty"` // empty if it prints none
	Median  cost   `json:"median"`
	All     []cost `json:"all"` // in the order of the runs
	// bytes of the file that the command wrote, if files are compared
	FileBytes int64 `json:"file_bytes,omitempty"`
}

func newReport() *report {
	return &report{Format: format, Time: time.Now().UTC().Truncate(time.Second), Processors: runtime.NumCPU(), Architecture: runtime.GOARCH}
}

// add appends a row for a workload, with the figures of both commands and the goals.
func (r *report) add(w workload, label string, other, mine side) error {
	row := result{
		Workload:  w.name,
		Against:   label,
		Runs:      len(mine.All),
		Wall:      ratio(float64(mine.Median.Wall), float64(other.Median.Wall)),
		CPU:       ratio(float64(mine.Median.CPU), float64(other.Median.CPU)),
		Peak:      ratio(float64(mine.Median.Peak), float64(other.Median.Peak)),
		File:      ratio(float64(mine.FileBytes), float64(other.FileBytes)),
		Symfilter: mine,
		Other:     other,
	}
	goals, err := goalsOf(w, r.Results)
	if err != nil {
		return err
	}
	for _, g := range goals {
		met := rounded(row.value(g.figure)) <= g.most
		row.Goals = append(row.Goals, goalResult{Figure: g.figure, Most: g.most, Met: met, text: g.text})
	}
	r.Results = append(r.Results, row)
	return nil
}

// value returns the value of a figure that a goal may bound: a ratio, or symfilter's peak memory in
// MiB.
func (r result) value(figure string) float64 {
	switch figure {
	case "wall":
		return r.Wall
	case "CPU":
		return r.CPU
	case "peak":
		return r.Peak
	case "file":
		return r.File
	default:
		return float64(r.Symfilter.Median.Peak) / (1 << 20)
	}
}

// ratio returns got/want, or 0 if want was not measured.
func ratio(got, want float64) float64 {
	if want == 0 {
		return 0
	}
	return got / want
}

func (r *report) save(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func readReport(path string) (*report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Format != format {
		return nil, fmt.Errorf("%s: format %q; want %q", path, r.Format, format)
	}
	return r, nil
}

// print writes the table for docs/bench.md. The last column has the other side's absolute
// figures. Missed goals are bold.
func (r *report) print(to io.Writer) error {
	if len(r.Results) == 0 {
		return nil
	}
	out := tabwriter.NewWriter(to, 0, 0, 1, ' ', 0)
	fmt.Fprintln(out, "| workload\t| against\t| wall\t| CPU\t| peak memory\t| goal\t| of\t|")
	fmt.Fprintln(out, "|---\t|---\t|---:\t|---:\t|---:\t|---\t|---\t|")
	for _, row := range r.Results {
		file := ""
		if row.File > 0 {
			file = ", file " + printed(row.File)
		}
		var goals []string
		for _, g := range row.Goals {
			if !g.Met {
				g.text = "**" + g.text + "**"
			}
			goals = append(goals, g.text)
		}
		m := row.Other.Median
		fmt.Fprintf(out, "| %s\t| %s\t| %s\t| %s\t| %s, %d MiB%s\t| %s\t| %.3f s, %.3f s, %d MiB\t|\n", row.Workload, row.Against, printed(row.Wall), printed(row.CPU),
			printed(row.Peak), row.Symfilter.Median.Peak>>20, file, strings.Join(goals, ", "), m.Wall.Seconds(), m.CPU.Seconds(), m.Peak>>20)
	}
	return out.Flush()
}

// compare prints, for each row, the ratios in two files, and how they changed: a change below 1
// means that symfilter became faster or smaller. Rows match if they have the same workload and
// other program. Rows without a match are printed after the table.
func compare(to io.Writer, old, new *report) error {
	out := tabwriter.NewWriter(to, 0, 0, 1, ' ', 0)
	fmt.Fprintln(out, "| workload\t| wall\t| CPU\t| peak memory\t|")
	fmt.Fprintln(out, "|---\t|---:\t|---:\t|---:\t|")
	change := func(before, after float64) string {
		if before == 0 {
			return "-"
		}
		return fmt.Sprintf("%.3f to %.3f: %.3f", before, after, after/before)
	}
	var alone []string
	for _, row := range new.Results {
		i := slices.IndexFunc(old.Results, func(o result) bool { return o.Workload == row.Workload && o.Against == row.Against })
		if i < 0 {
			alone = append(alone, fmt.Sprintf("only in the new file: %s, against %s", row.Workload, row.Against))
			continue
		}
		before := old.Results[i]
		fmt.Fprintf(out, "| %s\t| %s\t| %s\t| %s\t|\n", row.Workload, change(before.Wall, row.Wall), change(before.CPU, row.CPU), change(before.Peak, row.Peak))
	}
	for _, row := range old.Results {
		if !slices.ContainsFunc(new.Results, func(n result) bool { return n.Workload == row.Workload && n.Against == row.Against }) {
			alone = append(alone, fmt.Sprintf("only in the old file: %s, against %s", row.Workload, row.Against))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, line := range alone {
		if _, err := fmt.Fprintln(to, line); err != nil {
			return err
		}
	}
	return nil
}

// compareFiles compares two files that -json wrote.
func compareFiles(to io.Writer, paths []string) error {
	if len(paths) != 2 {
		return fmt.Errorf("-compare needs two files, OLD and NEW; got %d", len(paths))
	}
	old, err := readReport(paths[0])
	if err != nil {
		return err
	}
	new, err := readReport(paths[1])
	if err != nil {
		return err
	}
	return compare(to, old, new)
}
