//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"

	"github.com/symfilter/symfilter/internal/testenv"
)

// heapOf returns the path of a heap profile of the twin, written by tcmalloc.
func (w *profiledTwin) heapOf(t *testing.T) string {
	t.Helper()
	library := testenv.Find(t, "/usr/lib/*/libtcmalloc.so.4")
	return w.record(t, []string{"LD_PRELOAD=" + library, "HEAPPROFILE=" + w.dir + "/tc"}, "tc.*.heap")
}

// own returns the names at locations in the program and its library.
func (w *profiledTwin) own(p *pprof.Profile) []string { return names(p, w.ids) }

// The files of a profile must be found by build ID on a server, at their paths, and below
// --sysroot. A file of another build, or a file that cannot be the one that ran, must not be used.
func TestFilesOfProfiles(t *testing.T) {
	// lld's segment offsets differ from GNU ld's
	w := newProfiledTwin(t, "clang++-19", "-fuse-ld=lld")
	heap := w.heapOf(t)
	named := w.profiled(t, "-q", heap)
	if n, inlined := w.compare(t, named); n < 6 || inlined < 1 {
		t.Errorf("%d locations were compared, with %d inlined calls", n, inlined)
	}
	want := w.own(named)
	raw := filepath.Join(t.TempDir(), "raw.pb.gz")
	if err := os.WriteFile(raw, unnamed(named, w.ids), 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(what string, p *pprof.Profile) {
		t.Helper()
		if d := cmp.Diff(want, w.own(p)); d != "" {
			t.Errorf("%s: want (-), got (+):\n%s", what, d)
		}
	}
	check("by build ID", w.profiled(t, "-q", raw))

	server := runDebuginfod(t, w.debug)
	cmd := exec.Command(command, "profile", "-q", "--output=pprof", raw)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+server.url, "DEBUGINFOD_CACHE_PATH="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	check("from a server", parsePprof(t, string(out)))

	// the files move below another root; later, other files are at their paths
	root := t.TempDir()
	below := filepath.Join(root, w.dir)
	if err := os.MkdirAll(filepath.Dir(below), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.dir, below); err != nil {
		t.Fatal(err)
	}
	heap = filepath.Join(below, filepath.Base(heap))
	system := []string{"--sysroot=" + root}
	check("below --sysroot", w.profiled(t, append(system, "-q", heap)...))

	var stderr bytes.Buffer
	messages := func(args ...string) string {
		stderr.Reset()
		cmd := exec.Command(command, append([]string{"profile", "--output=folded", "--debug-file-directory", w.debug}, args...)...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr.Bytes())
		}
		if bytes.Contains(out, []byte("fill(")) {
			t.Errorf("a function is named:\n%s", out)
		}
		return stderr.String()
	}
	if got := messages(heap); !strings.Contains(got, w.dir+"/shop: no such file here; --sysroot names a folder") {
		t.Errorf("without the files: got\n%s", got)
	}
	if got := messages("--no-paths", "--sysroot="+root, heap); !strings.Contains(got, "not opened (--no-paths)") {
		t.Errorf("without paths: got\n%s", got)
	}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "cp", command, filepath.Join(w.dir, "shop"))
	if got := messages(heap); !strings.Contains(got, w.dir+"/shop: not the file that ran: ") {
		t.Errorf("with another file: got\n%s", got)
	}
	// the mappings have build IDs, but other files are at their paths
	other := parsePprof(t, string(unnamed(named, nil)))
	data := bytes.Buffer{}
	other.Write(&data)
	if err := os.WriteFile(raw, data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	check("with another file at the path", w.profiled(t, "-q", raw))
	text, err := os.ReadFile(heap)
	if err != nil {
		t.Fatal(err)
	}
	deleted := filepath.Join(root, "deleted")
	if err := os.WriteFile(deleted, bytes.ReplaceAll(text, []byte("/shop\n"), []byte("/shop (deleted)\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := messages(append(system, deleted)...); !strings.Contains(got, "/shop (deleted): deleted while the program ran") {
		t.Errorf("with a deleted file: got\n%s", got)
	}
}

// A heap profile of a Go program, stripped or not, must get the names that the program itself
// writes. The test removes the functions from the profile.
func TestProfilesOfGoProgramsGetTheirNamesBack(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, flags string }{{"with debug information", ""}, {"stripped", "-s -w"}} {
		program, heap := filepath.Join(dir, tt.name), filepath.Join(dir, "heap.pb.gz")
		run(t, nil, "go", "build", "-buildvcs=false", "-ldflags="+tt.flags, "-o", program, "./testdata/profile/goshop")
		run(t, nil, program, heap)
		data, err := os.ReadFile(heap)
		if err != nil {
			t.Fatal(err)
		}
		want := parsePprof(t, string(data))
		if err := os.WriteFile(heap, unnamed(want, nil), 0o644); err != nil {
			t.Fatal(err)
		}
		got := parsePprof(t, run(t, nil, command, "profile", "--output=pprof", heap))
		if d := cmp.Diff(functionsOf(want), functionsOf(got)); d != "" {
			t.Errorf("%s: the program's own names (-), symfilter's (+):\n%s", tt.name, d)
		}
		if n := len(functionsOf(got)); n < 5 {
			t.Errorf("%s: %d locations", tt.name, n)
		}
	}
}

// functionsOf returns the functions and lines of all locations. Debug information names functions
// in assembly with the suffix .abi0.
func functionsOf(p *pprof.Profile) (all []string) {
	for _, l := range p.Location {
		text := fmt.Sprintf("%#x", l.Address)
		for _, line := range l.Line {
			text += fmt.Sprintf(" %s %s:%d", strings.TrimSuffix(line.Function.Name, ".abi0"), filepath.Base(line.Function.Filename), line.Line)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}
