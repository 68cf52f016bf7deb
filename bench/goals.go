//go:build linux

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// goal is a bound for one figure of a row.
type goal struct {
	figure string  // wall, CPU, peak or file: a ratio; MiB: symfilter's own peak memory
	most   float64 // largest allowed value
	text   string  // the bound as the table shows it
}

// parseGoals reads goals such as "wall 0.25, peak 0.35, file 2.0, 30 MiB".
func parseGoals(s string) ([]goal, error) {
	if s == "" {
		return nil, nil
	}
	var all []goal
	for text := range strings.SplitSeq(s, ", ") {
		figure, number, ok := strings.Cut(text, " ")
		if figure == "MiB" || number == "MiB" {
			figure, number = number, figure
		}
		most, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || !(most > 0) || math.IsInf(most, 0) {
			return nil, fmt.Errorf("goal %q: want a figure and a number, as in wall 0.25, or 30 MiB", text)
		}
		switch figure {
		case "wall", "CPU", "peak", "file", "MiB":
		default:
			return nil, fmt.Errorf("goal %q: want wall, CPU, peak, file or MiB", text)
		}
		all = append(all, goal{figure, most, text})
	}
	return all, nil
}

// slack is the factor by which an untuned binary's ratios may exceed the tuned binary's.
const slack = 1.1

// goalsOf returns the goals of a workload. For an untuned binary, they are the tuned binary's
// ratios in results, times slack. Without these ratios, there are no goals.
func goalsOf(w workload, results []result) ([]goal, error) {
	if w.like == "" {
		return parseGoals(w.goals)
	}
	var all []goal
	for _, r := range results {
		if r.Workload != w.like {
			continue
		}
		for _, figure := range []string{"wall", "CPU", "peak"} {
			most := rounded(r.value(figure) * slack)
			all = append(all, goal{figure, most, figure + " " + printed(most)})
		}
	}
	return all, nil
}

// rounded returns a ratio as the table prints it. Goals are compared with rounded ratios, which
// readers of the table can check.
func rounded(ratio float64) float64 { return math.Round(ratio*1000) / 1000 }

func printed(ratio float64) string { return strconv.FormatFloat(ratio, 'f', 3, 64) }
