//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sample returns a report of two rows.
func sample(t *testing.T) *report {
	t.Helper()
	r := &report{Format: format, Time: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Processors: 2, Architecture: "amd64"}
	sideOf := func(program, version string, bytes int64, runs ...cost) side {
		return side{Program: program, Version: version, Median: median(runs), All: runs, FileBytes: bytes}
	}
	add := func(w workload, label string, other, mine side) {
		if err := r.add(w, label, other, mine); err != nil {
			t.Fatal(err)
		}
	}
	add(workload{name: "first frame", goals: "wall 0.25, peak 0.1"}, reference,
		sideOf(reference, "LLVM version 19.1.7", 0, cost{100e6, 80e6, 200 << 20}, cost{90e6, 80e6, 200 << 20}, cost{400e6, 90e6, 200 << 20}),
		sideOf("symfilter", "symfilter v1.2.3", 0, cost{20e6, 20e6, 40 << 20}, cost{25e6, 20e6, 40 << 20}, cost{30e6, 20e6, 40 << 20}))
	add(workload{name: "index"}, "llvm-gsymutil-19", sideOf("llvm-gsymutil-19", "", 100, cost{2e9, 3e9, 1 << 30}), sideOf("symfilter", "", 150, cost{1e9, 1e9, 256 << 20}))
	return r
}

func TestTheTable(t *testing.T) {
	want := `| workload    | against            | wall  | CPU   | peak memory                | goal                     | of                         |
|---          |---                 |---:   |---:   |---:                        |---                       |---                         |
| first frame | llvm-symbolizer-19 | 0.250 | 0.250 | 0.200, 40 MiB              | wall 0.25, **peak 0.1**  | 0.100 s, 0.080 s, 200 MiB  |
| index       | llvm-gsymutil-19   | 0.500 | 0.333 | 0.250, 256 MiB, file 1.500 |                          | 2.000 s, 3.000 s, 1024 MiB |
`
	var got bytes.Buffer
	if err := sample(t).print(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(blanks(want), blanks(got.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// blanks returns a table without the padding of its cells.
func blanks(table string) string {
	for strings.Contains(table, "  ") {
		table = strings.ReplaceAll(table, "  ", " ")
	}
	return table
}

// The file of -json must have exactly these members. If a member is removed or changes its meaning,
// the constant format needs another version.
func TestTheFileOfResults(t *testing.T) {
	const want = `{
  "format": "symfilter-bench 1",
  "time": "2026-11-20T10:00:00Z",
  "processors": 2,
  "architecture": "amd64",
  "results": [
    {
      "workload": "index",
      "against": "llvm-gsymutil-19",
      "runs": 1,
      "wall": 0.5,
      "cpu": 0.25,
      "peak": 0.25,
      "file": 1.5,
      "goals": [
        {
          "figure": "wall",
          "most": 0.25,
          "met": false
        }
      ],
      "symfilter": {
        "program": "symfilter",
        "version": "symfilter v1.2.3",
        "median": {
          "wall_ns": 1000,
          "cpu_ns": 1000,
          "peak_bytes": 1024
        },
        "all": [
          {
            "wall_ns": 1000,
            "cpu_ns": 1000,
            "peak_bytes": 1024
          }
        ],
        "file_bytes": 150
      },
      "other": {
        "program": "llvm-gsymutil-19",
        "version": "LLVM version 19.1.7",
        "median": {
          "wall_ns": 2000,
          "cpu_ns": 4000,
          "peak_bytes": 4096
        },
        "all": [
          {
            "wall_ns": 2000,
            "cpu_ns": 4000,
            "peak_bytes": 4096
          }
        ],
        "file_bytes": 100
      }
    }
  ]
}
`
	r := sample(t)
	r.Results = nil
	mine, other := []cost{{1000, 1000, 1024}}, []cost{{2000, 4000, 4096}}
	if err := r.add(workload{name: "index", goals: "wall 0.25"}, "llvm-gsymutil-19", side{"llvm-gsymutil-19", "LLVM version 19.1.7", median(other), other, 100},
		side{"symfilter", "symfilter v1.2.3", median(mine), mine, 150}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "results.json")
	if err := r.save(path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	r.Results[0].Goals[0].text = "" // only for the table
	if diff := cmp.Diff(r, again, cmp.AllowUnexported(goalResult{})); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

func TestFilesOfResultsAreCompared(t *testing.T) {
	save := func(r *report) string {
		path := filepath.Join(t.TempDir(), "results.json")
		if err := r.save(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old, new := sample(t), sample(t)
	new.Results[0].Wall, new.Results[0].CPU = 0.2, 0.275
	old.Results[1].Workload = "index of old"
	new.Results[1].Against = "another program"
	const want = `| workload | wall | CPU | peak memory |
|--- |---: |---: |---: |
| first frame | 0.250 to 0.200: 0.800 | 0.250 to 0.275: 1.100 | 0.200 to 0.200: 1.000 |
only in the new file: index, against another program
only in the old file: index of old, against llvm-gsymutil-19
`
	var got bytes.Buffer
	if err := compareFiles(&got, []string{save(old), save(new)}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, blanks(got.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	new.Format = "symfilter-bench 2"
	for _, paths := range [][]string{nil, {save(old)}, {save(old), save(new)}, {save(old), "none.json"}} {
		if err := compareFiles(&got, paths); err == nil {
			t.Errorf("%d files: no error", len(paths))
		}
	}
}

func TestRatioOfNothing(t *testing.T) {
	if got := ratio(1, 0); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}
