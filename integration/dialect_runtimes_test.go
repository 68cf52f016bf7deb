//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// symfilter prints the functions of a heap profile after the profile's maps, and leaves the profile
// itself unchanged.
func TestHeapProfilesHaveFootnotes(t *testing.T) {
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "heap", twinBuild{link: link})
			log := w.output(t, nil)
			for _, input := range []struct {
				log  []byte
				args []string
			}{{log: log}, {args: []string{writeLog(t, log)}}} {
				out := w.text(t, input.log, input.args...)
				notes := strings.Join(regexp.MustCompile(`(?m)^  (#\d+|\(inlined by\)) .*\n`).FindAllString(out, -1), "")
				if got, ok := strings.CutSuffix(out, notes); !ok || got != string(log) {
					t.Errorf("the profile has changed:\n%s", out)
				}
				frames := resolvedOf(w.frames(t, input.log, input.args...))
				w.wantChain(t, frames, "leaf", "visit", "settle", "close", "audit", "count", "run", "main", "second")
			}
			if name == "pie" {
				w.wantSame(t, log)
				w.wantNone(t, log)
			}
		})
	}
}

func TestHeapProfileOfGperftoolsHasFootnotes(t *testing.T) {
	testenv.OnlyLong(t)
	library := testenv.Find(t, "/usr/lib/*/libtcmalloc.so.4")
	w := newTraceTwin(t, "heap", twinBuild{})
	path := filepath.Join(t.TempDir(), "profile")
	w.output(t, []string{"LD_PRELOAD=" + library, "HEAPPROFILE=" + path}, "malloc")
	profile := path + ".0001.heap"
	log, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	calls := []string{"malloc", "visit", "settle", "close", "audit", "count", "run", "allocating"}
	w.wantChain(t, resolvedOf(w.frames(t, log)), calls...)
	w.wantChain(t, resolvedOf(w.frames(t, nil, profile)), calls...)
}

// Frames of Ruby must be resolved, in a file or as footnotes in a pipe, since Ruby prints the maps
// after the frames.
func TestReportOfRubyIsResolved(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "ruby")
	w := newTraceTwin(t, "native", twinBuild{link: []string{"-shared", "-fPIC"}})
	script := `require "fiddle"; l = Fiddle.dlopen("./native"); Fiddle::Function.new(l["inventory_die"], [], Fiddle::TYPE_VOID).call`
	cmd := exec.Command("ruby", "-e", script)
	cmd.Dir = w.dir
	log, _ := producers.combined(t, cmd)
	calls := []string{"inventory.h/fall", "leaf", "visit", "settle", "close", "audit", "count", "run", "die"}
	w.wantChain(t, w.frames(t, nil, writeLog(t, log)), calls...)
	w.wantChain(t, resolvedOf(w.frames(t, log)), calls...)
	w.wantNone(t, log)
	w.wantNone(t, nil, writeLog(t, log))
}

// Traces of Xorg must be resolved: one exact symbol proves the base of its module. Other frames
// have the nearest symbol, however far away.
func TestTracesOfXorgAreResolved(t *testing.T) {
	w := newTraceTwin(t, "runtimes", twinBuild{link: []string{"-rdynamic", "-ldl"}})
	calls := []string{"print", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	w.wantChain(t, w.frames(t, w.output(t, nil, "xorg")), calls...)
	signalled := []string{"print", "handler", "fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	log := w.output(t, nil, "xorg-fault")
	w.wantSame(t, log)
	w.wantChain(t, w.frames(t, log), signalled...)
	w.wantNone(t, log)
}

// Traces of Julia must be resolved. Julia prints the address of a call, and the path of the module.
func TestTracesOfJuliaAreResolvedByMaps(t *testing.T) {
	w := newTraceTwin(t, "runtimes", twinBuild{link: []string{"-ldl"}})
	log := w.output(t, nil, "julia")
	w.wantSame(t, log)
	w.wantChain(t, w.frames(t, log), "print", "leaf", "visit", "settle", "close", "audit", "count", "run", "main")
}

// Traces of gfortran's library must be resolved only with --image, since they have only addresses.
func TestTracesOfGfortranAreResolvedByImage(t *testing.T) {
	testenv.OnlyLong(t)
	testenv.Find(t, "/usr/lib/*/libgfortran.so.5")
	w := newTraceTwin(t, "runtimes", twinBuild{link: []string{"-no-pie", "-ldl"}})
	for form, calls := range map[string][]string{
		"fortran":       {"show", "count", "run", "main"},
		"fortran-fault": {"fall", "dying-leaf", "count", "run", "main"},
	} {
		log := w.output(t, nil, form)
		if got := w.text(t, log); got != string(log) {
			t.Errorf("without --image:\n%s", got)
		}
		w.wantChain(t, resolvedOf(w.frames(t, log, "--image", w.program)), calls...)
		w.wantNone(t, log, "--image", w.program)
	}
}

// For a signal in a C function, Go prints only the address. It must be resolved only with --image.
func TestSignalInCOfGoIsResolvedByImage(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "go", "gcc")
	dir := t.TempDir()
	w := &traceTwin{dir: filepath.Join(dir, "run"), whole: filepath.Join(dir, "whole"), debug: filepath.Join(dir, "debug")}
	w.program = filepath.Join(w.dir, "cgo")
	whole := filepath.Join(w.whole, "cgo")
	run(t, nil, "go", "build", "-o", whole, filepath.Join(checkout, "integration", "testdata", "twin", "cgo.go"))
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "strip", "-o", w.program, whole)
	id := buildIDOf(t, whole)
	if err := os.MkdirAll(filepath.Join(w.debug, ".build-id", id[:2]), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(whole, filepath.Join(w.debug, ".build-id", id[:2], id[2:]+".debug")); err != nil {
		t.Fatal(err)
	}
	log := w.output(t, nil)
	if got := w.text(t, log); got != string(log) {
		t.Errorf("without --image:\n%s", got)
	}
	frames := w.frames(t, log, "--image", w.program)
	w.wantChain(t, frames, "cgo.go/c-fall", "c-settle")
}

// Without debug information, a Rust program prints the names of its symbol table, which prove the
// load base. Without a symbol table, the calls before the addresses prove it. The answers must
// equal the output of the program with debug information.
func TestPanicsOfRustAreAsPrintedOnline(t *testing.T) {
	testenv.OnlyLong(t)
	// The compiler may be installed without a toolchain, as by rustup.
	if out, err := producers.combined(t, exec.Command("rustc", "--version")); err != nil {
		t.Skipf("rustc --version: %v\n%s", err, out)
	}
	dir := t.TempDir()
	build := func(name string, flags ...string) (whole, program, debug string) {
		debug = filepath.Join(dir, name)
		whole, program = filepath.Join(debug, "whole"), filepath.Join(debug, "panic")
		source := filepath.Join(checkout, "integration", "testdata", "twin", "panic.rs")
		run(t, nil, "mkdir", debug)
		run(t, nil, "rustc", append(flags, "-g", "-C", "link-arg=-Wl,--build-id", source, "-o", whole)...)
		run(t, nil, "strip", "--strip-debug", "-o", program, whole)
		id := buildIDOf(t, whole)
		run(t, nil, "mkdir", "-p", filepath.Join(debug, ".build-id", id[:2]))
		run(t, nil, "cp", whole, filepath.Join(debug, ".build-id", id[:2], id[2:]+".debug"))
		return whole, program, debug
	}
	output := func(program string, args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "RUST_BACKTRACE=full")
		out, _ := producers.combined(t, cmd)
		return string(out)
	}
	places := func(text string) (all []string) {
		for _, found := range regexp.MustCompile(`(?m)^ +at (.*)$`).FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
		return all
	}
	whole, program, debug := build("first", "-O")
	want := places(output(whole))
	for _, how := range []struct{ program, filter []string }{{nil, []string{"--image", program}}, {[]string{"maps"}, nil}} {
		log, args := output(program, how.program...), append(how.filter, "--debug-file-directory", debug)
		got := run(t, []byte(log), command, args...)
		if diff := cmp.Diff(want, places(got)); diff != "" || len(want) < 20 {
			t.Errorf("%s: online (-), filtered (+):\n%s", args, diff)
		}
		if again := run(t, []byte(got), command, args...); again != got {
			t.Errorf("%s: filtered once (-), twice (+):\n%s", args, cmp.Diff(got, again))
		}
	}
	log := output(program)
	run(t, nil, "strip", "--strip-all", program)
	bare := output(program)
	if got := places(run(t, []byte(bare), command, "--image", whole)); !cmp.Equal(want, got) {
		t.Errorf("addresses alone: online (-), filtered (+):\n%s", cmp.Diff(want, got))
	}
	_, other, debug := build("second", "-C", "opt-level=1")
	if got := run(t, []byte(log), command, "--image", other, "--debug-file-directory", debug); got != log {
		t.Errorf("another build (-), filtered (+):\n%s", cmp.Diff(log, got))
	}
}

func resolvedOf(frames []twinFrame) []twinFrame {
	return slices.DeleteFunc(frames, func(f twinFrame) bool { return len(f.Frames) == 0 })
}

// wantNone fails the test if another build of the twin resolves a frame of log. Afterwards the
// twin's files are restored.
func (w *traceTwin) wantNone(t *testing.T, log []byte, args ...string) {
	t.Helper()
	b := twinBuild{flags: []string{"-O0"}}
	program := filepath.Base(w.program)
	if program == "native" {
		b.link = []string{"-shared", "-fPIC"}
	}
	other := newTraceTwin(t, program, b)
	files := []string{program, "libledger.so"}
	for _, file := range files {
		run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
	}
	frames := w.frames(t, log, append([]string{"--debug-file-directory", other.debug}, args...)...)
	if len(frames) == 0 {
		t.Errorf("no frames in\n%s", log)
	}
	for _, f := range frames {
		if filepath.Dir(f.Module) == w.dir && len(f.Frames) > 0 {
			t.Errorf("%s+%s is answered by another build: %+v", f.Module, f.Offset, f.Frames)
		}
	}
	for _, file := range files {
		run(t, nil, "strip", "-o", filepath.Join(w.dir, file), filepath.Join(w.whole, file))
	}
}
