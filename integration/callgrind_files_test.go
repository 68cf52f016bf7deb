//go:build linux

package integration

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// builtProgram builds a program of testdata/callgrind, and returns its path.
func builtProgram(t *testing.T, source string, argv ...string) string {
	t.Helper()
	prog := filepath.Join(t.TempDir(), "prog")
	run(t, nil, argv[0], append(slices.Clone(argv[1:]), "-Wl,--build-id", filepath.Join(checkout, "integration", "testdata", "callgrind", source), "-o", prog)...)
	return prog
}

// callgrindFiles runs a program under Callgrind, and returns the sorted files.
func callgrindFiles(t *testing.T, flags []string, argv ...string) []string {
	t.Helper()
	base := filepath.Join(t.TempDir(), "callgrind.out")
	cmd := exec.Command("valgrind", slices.Concat(profileTool, flags, []string{"--callgrind-out-file=" + base}, argv)...)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
	if out, err := producers.combined(t, cmd); err != nil {
		t.Fatalf("valgrind: %v\n%s", err, out)
	}
	files, err := filepath.Glob(base + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// selfCosts adds up the functions' own costs in profiles.
func selfCosts(profiles ...*profile) map[string]int64 {
	sum := map[string]int64{}
	for _, p := range profiles {
		for _, f := range p.functions {
			for e, n := range f.Self {
				if n != 0 {
					sum[f.Object+" "+f.File+" "+f.name()+" "+e] += n
				}
			}
		}
	}
	return sum
}

// Callgrind writes a file for each thread or part. --thread and --part must select the costs of one
// file.
func TestFilesOfARunAreOneProfile(t *testing.T) {
	need(t, "valgrind", "gcc", "g++")
	for _, c := range []struct {
		name, source string
		build, flags []string
		selects      string // flag that selects the costs of one file
		number       string // text before the number on its line
		least        int    // minimum number of files
	}{
		{"threads", "threads.cpp", with(gxx, "-O1"), []string{"--separate-threads=yes", "--dump-instr=yes"}, "--thread=", "thread: ", 3},
		{"parts", "shape.c prof.c", with(gcc, "-O1"), []string{"--dump-every-bb=8000"}, "--part=", "part: ", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sources := strings.Fields(c.source)
			build := c.build
			for _, extra := range sources[1:] {
				build = with(build, filepath.Join(checkout, "integration", "testdata", "callgrind", extra))
			}
			files := callgrindFiles(t, c.flags, builtProgram(t, sources[0], build...))
			read := func(args ...string) *profile {
				return readProfile(t, run(t, nil, command, append([]string{"callgrind", "--output=json"}, args...)...))
			}
			joint := read(files...)
			var singles []*profile
			total := map[string]int64{}
			for _, f := range files {
				text := readFile(t, f)
				if text == "" { // the base file, with --separate-threads
					continue
				}
				single := read(f)
				singles = append(singles, single)
				for e, n := range single.total {
					total[e] += n
				}
				_, rest, _ := strings.Cut(text, "\n"+c.number)
				number, _, _ := strings.Cut(rest, "\n")
				if d := cmp.Diff(selfCosts(single), selfCosts(read(append([]string{c.selects + number}, files...)...))); d != "" {
					t.Errorf("own costs of %s (-the file alone, +%s%s of all):\n%s", filepath.Base(f), c.selects, number, d)
				}
			}
			if len(singles) < c.least {
				t.Fatalf("%d files with costs: %q, want %d", len(singles), files, c.least)
			}
			if d := cmp.Diff(total, joint.total); d != "" {
				t.Errorf("totals (-files, +together):\n%s", d)
			}
			want := selfCosts(singles...)
			if d := cmp.Diff(want, selfCosts(joint)); d != "" {
				t.Errorf("own costs (-files, +together):\n%s", d)
			}
			if len(joint.parts) != len(singles) {
				t.Errorf("%d parts, want %d", len(joint.parts), len(singles))
			}
			if len(want) < 100 {
				t.Errorf("%d functions: %v", len(want), slices.Sorted(maps.Keys(want)))
			}
		})
	}
}
