//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// links are the ways in which a twin is linked. The short test tries only one.
func links() map[string][]string {
	if !long() {
		return map[string][]string{"pie": {"-pie"}}
	}
	return map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}}
}

// gdb returns the output of gdb with commands on a twin's program, with further arguments.
func (w *traceTwin) gdb(t *testing.T, args []string, commands ...string) []byte {
	t.Helper()
	need(t, "gdb")
	all := []string{"-nx", "-batch"}
	for _, c := range append([]string{"set disable-randomization off", "set debuginfod enabled off"}, commands...) {
		all = append(all, "-ex", c)
	}
	cmd := exec.Command("gdb", append(append(all, "--args", w.program), args...)...)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
	out, err := producers.combined(t, cmd)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return out
}

// core returns the core dump of a twin's crashed program, and gdb's output for the commands.
func (w *traceTwin) core(t *testing.T, commands ...string) (path string, out []byte) {
	t.Helper()
	path = filepath.Join(w.dir, "core")
	out = w.gdb(t, nil, append([]string{"run", "generate-core-file " + path}, commands...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path, out
}

// replace replaces the twin's files by the files of another build, which it returns.
func (w *traceTwin) replace(t *testing.T) (other *traceTwin) {
	t.Helper()
	name := filepath.Base(w.program)
	other = newTraceTwin(t, name, twinBuild{flags: []string{"-O0"}})
	for _, file := range []string{name, "libledger.so"} {
		run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
	}
	return other
}

// wantNothing fails the test if another build of the twin resolves a frame of log.
func (w *traceTwin) wantNothing(t *testing.T, log []byte, args ...string) {
	t.Helper()
	other := w.replace(t)
	for _, f := range w.frames(t, log, append([]string{"--debug-file-directory", other.debug}, args...)...) {
		if _, err := os.Stat(filepath.Join(w.whole, filepath.Base(f.Module))); err == nil && len(f.Frames) > 0 {
			t.Errorf("%s+%s is answered by another build: %+v", f.Module, f.Offset, f.Frames)
		}
	}
	once := w.text(t, log, append([]string{"--debug-file-directory", other.debug}, args...)...)
	ours := regexp.MustCompile(`(?m)^.*(ledger|fault).*\n`)
	if got, want := strings.Join(ours.FindAllString(once, -1), ""), strings.Join(ours.FindAllString(string(log), -1), ""); got != want {
		t.Errorf("lines of frames have changed: got\n%s\nwant\n%s", got, want)
	}
}

// wantOnce fails the test if filtering the filtered log again changes it.
func (w *traceTwin) wantOnce(t *testing.T, log []byte, args ...string) {
	t.Helper()
	once := w.text(t, log, args...)
	if twice := w.text(t, []byte(once), args...); twice != once {
		t.Errorf("filtered once:\n%s\nfiltered twice:\n%s", once, twice)
	}
}

// Frames of gdb must be resolved by the maps before or after them, which have the program's file
// and addresses. gdb names no file for frames of the program.
func TestFramesOfGDBAreResolved(t *testing.T) {
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "fault", twinBuild{link: link})
			core, out := w.core(t, "bt", "info proc mappings")
			w.wantChain(t, w.frames(t, out), diedCalls...)
			w.wantOnce(t, out)
			w.core(t)
			for _, commands := range [][]string{{"bt", "info sharedlibrary", "info proc mappings"}, {"info proc mappings", "thread apply all bt full"}} {
				out := w.gdb(t, nil, append([]string{"core-file " + core}, commands...)...)
				w.wantChain(t, w.frames(t, out)[1:], diedCalls...) // gdb prints the first frame twice
			}
			w.wantNothing(t, out)
		})
	}
}

// Without maps, libraries must be located by the functions that gdb names, and by the paths from
// which gdb has read symbols.
func TestLibrariesOfGDBAreResolvedWithoutMaps(t *testing.T) {
	w := newTraceTwin(t, "fault", twinBuild{})
	core, _ := w.core(t)
	for _, commands := range [][]string{{"bt"}, {"bt", "info sharedlibrary"}} {
		out := w.gdb(t, nil, append([]string{"core-file " + core}, commands...)...)
		library := strings.Join(regexp.MustCompile(`(?m)^.*libledger.*\n`).FindAllString(string(out), -1), "")
		w.wantChain(t, w.frames(t, []byte(library)), "visit", "settle", "close", "audit")
		w.wantChain(t, w.frames(t, out, "--image", "fault="+w.program)[1:], diedCalls...) // gdb prints the first frame twice
	}
}

// gdb starts programs without address space randomization. Such frames must be resolved if --image,
// or gdb's output, names the program's file.
func TestProgramsOfGDBThatAreNotRandomizedNeedTheirFile(t *testing.T) {
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "fault", twinBuild{link: link})
			out := w.gdb(t, nil, "set disable-randomization on", "run", "bt")
			if strings.Contains(string(out), "Error disabling address space randomization") {
				testenv.Forbidden(t, "to disable address space randomization", "gdb could not")
			}
			w.wantChain(t, w.frames(t, out, "--image", w.program), diedCalls...)
			out = append([]byte("Reading symbols from "+w.program+"...\n"), out...)
			w.wantChain(t, w.frames(t, out), diedCalls...)
			w.wantNothing(t, out)
		})
	}
}

// gdb wraps lines at the terminal's width. The module of a frame, or the brackets after the
// function, may be on a line of their own. Wrapped frames must have the same answers as joined
// ones.
func TestFramesOfGDBMayBeWrapped(t *testing.T) {
	w := newTraceTwin(t, "fault", twinBuild{})
	core, _ := w.core(t)
	for _, width := range []string{"30", "60", "80", "120"} {
		cmd := exec.Command("gdb", "-nx", "-q", "-ex", "set width "+width, "-ex", "set debuginfod enabled off", "-ex", "bt", "-ex", "info proc mappings", "-ex", "quit", w.program, core)
		out, err := producers.combined(t, cmd) // with -batch, gdb does not wrap
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		joined := regexp.MustCompile(`\n +(\(\)|from )`).ReplaceAll(out, []byte(" $1"))
		if bytes.Equal(joined, out) {
			t.Fatalf("nothing is wrapped at %s:\n%s", width, out)
		}
		want, got := w.frames(t, joined), w.frames(t, out)
		w.wantChain(t, want[1:], diedCalls...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("width %s: joined (-), wrapped (+):\n%s\n%s", width, diff, out)
		}
		w.wantOnce(t, out)
	}
}

// The frame that a signal has interrupted must be looked up at its exact address, not before it.
func TestFramesOfGDBAfterASignalAreExact(t *testing.T) {
	w := newTraceTwin(t, "backtrace", twinBuild{})
	out := w.gdb(t, []string{"signal"}, "handle SIGSEGV nostop pass", "break backtrace_symbols_fd", "run", "bt", "info proc mappings")
	w.wantChain(t, w.frames(t, out), "symbols", "handler", "fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main")
}

func TestFramesOfEuStackAreResolved(t *testing.T) {
	need(t, "eu-stack", "eu-unstrip")
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "fault", twinBuild{link: link})
			core, _ := w.core(t)
			// eu-stack fails if a file has no frames
			out, _ := producers.output(t, exec.Command("eu-stack", "-b", "--core", core))
			list := run(t, nil, "eu-unstrip", "-n", "--core", core)
			both := append([]byte(list), out...)
			w.wantChain(t, w.frames(t, both), diedCalls...)
			if got, want := list+w.text(t, out), w.text(t, both); got != want {
				t.Errorf("without the list of modules: got\n%s\nwant\n%s", got, want)
			}
			w.wantOnce(t, out)
			var bare bytes.Buffer // as gdb prints frames without files
			for _, m := range regexp.MustCompile(`(?m)^#\d+ +0x[0-9a-f]+`).FindAllString(string(out), -1) {
				fmt.Fprintf(&bare, "%s in ?? ()\n", m)
			}
			w.wantChain(t, w.frames(t, append([]byte(list), bare.Bytes()...)), diedCalls...)
			other := w.replace(t)
			if got := run(t, out, command, "--no-default-debug-directories", "--debug-file-directory", other.debug); got != string(out) {
				t.Errorf("with other builds only: got\n%s", got)
			}
		})
	}
}

// entry returns systemd-coredump's message for a core dump, made from the output of eu-stack. It
// has the modules' paths, or only their names if names is set.
func (w *traceTwin) entry(t *testing.T, core string, names bool) []byte {
	t.Helper()
	need(t, "eu-stack", "eu-unstrip")
	files := make(map[string]string) // by build ID
	for _, m := range regexp.MustCompile(`(?m)^\S+ ([0-9a-f]+)@\S+ (\S+) \S+ (\S+)$`).FindAllStringSubmatch(run(t, nil, "eu-unstrip", "-n", "--core", core), -1) {
		if files[m[1]] = m[2]; m[2] == "." {
			files[m[1]] = m[3]
		}
	}
	stack, _ := producers.output(t, exec.Command("eu-stack", "-b", "--core", core))
	var b bytes.Buffer
	fmt.Fprintf(&b, "Process 4711 (inventory) of user 1000 dumped core.\n\nStack trace of thread 4711:\n")
	frame := regexp.MustCompile(`(?m)^#(\d+) +0x([0-9a-f]+)(?: .*)?\n +\[([0-9a-f]+)\]@0x([0-9a-f]+)`)
	for _, m := range frame.FindAllStringSubmatch(string(stack), -1) {
		number, _ := strconv.Atoi(m[1])
		addr, _ := strconv.ParseUint(m[2], 16, 64)
		base, _ := strconv.ParseUint(m[4], 16, 64)
		file := files[m[3]]
		if names {
			file = filepath.Base(file)
		}
		fmt.Fprintf(&b, "#%-2d 0x%016x n/a (%s + 0x%x)\n", number, addr, file, addr-base)
	}
	fmt.Fprintf(&b, "ELF object binary architecture: AMD x86-64\n")
	return b.Bytes()
}

// Frames in the entries of systemd-coredump must be resolved. Each frame has an offset from the
// base of its module.
func TestEntriesOfSystemdCoredumpAreResolved(t *testing.T) {
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "fault", twinBuild{link: link})
			core, _ := w.core(t)
			paths, names := w.entry(t, core, false), w.entry(t, core, true)
			w.wantChain(t, w.frames(t, paths), diedCalls...)
			w.wantOnce(t, paths)
			info := append([]byte("    Executable: "+w.program+"\n"), names...)
			w.wantChain(t, w.frames(t, info), diedCalls...)

			ids := fmt.Sprintf("Module fault with build-id %s\nModule libledger.so from deb shop-1.0.amd64, build-id=%s\n",
				buildIDOf(t, w.program), buildIDOf(t, filepath.Join(w.dir, "libledger.so")))
			field := fmt.Sprintf(`COREDUMP_PACKAGE_JSON={"elfType":"coredump","fault":{"buildId":"%s"},"libledger.so":{"type":"deb","buildId":"%s"}}`+"\n",
				buildIDOf(t, w.program), buildIDOf(t, filepath.Join(w.dir, "libledger.so")))
			deleted := bytes.ReplaceAll(paths, []byte(" + 0x"), []byte(" (deleted) + 0x"))
			w.wantNothing(t, paths)
			w.wantNothing(t, info)
			w.wantNothing(t, deleted)
			for _, before := range []string{ids, field} {
				w.wantChain(t, w.frames(t, append([]byte(before), names...)), diedCalls...)
				w.wantChain(t, w.frames(t, append([]byte(before), deleted...)), diedCalls...)
			}
		})
	}
}

// In the journal's JSON, the path of the program is in a separate field. The frames must have the
// same answers as in the message alone.
func TestEntriesOfSystemdCoredumpInJSONAreResolved(t *testing.T) {
	w := newTraceTwin(t, "fault", twinBuild{})
	core, _ := w.core(t)
	message := w.entry(t, core, true)
	line, err := json.Marshal(map[string]string{
		"_PID": "4712", "COREDUMP_EXE": w.program, "MESSAGE": string(message), "SYSLOG_IDENTIFIER": "systemd-coredump",
	})
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(w.text(t, append([]byte("COREDUMP_EXE="+w.program+"\n"), message...)), "\n")
	var got struct{ MESSAGE string }
	if err := json.Unmarshal([]byte(w.text(t, append(line, '\n'))), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.MESSAGE); diff != "" || !strings.Contains(want, "inventory.h:") {
		t.Errorf("the message alone (-), in the entry (+):\n%s", diff)
	}
}

// Frames in the entries that systemd-coredump itself writes to a journal must be resolved. If a
// module has a package note, the text has the module's path and build ID.
func TestSystemdCoredumpItself(t *testing.T) {
	const program = "/lib/systemd/systemd-coredump"
	testenv.OnlyLong(t)
	need(t, program, "unshare", "g++", "coredumpctl")
	feeder := filepath.Join(t.TempDir(), "coredump")
	run(t, nil, "g++", "-O1", "-o", feeder, filepath.Join("testdata", "twin", "coredump.cc"))
	for name, link := range links() {
		for _, note := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", name, note), func(t *testing.T) {
				// systemd 252 omits the second frame of a program that it finds by path.
				b, calls := twinBuild{link: link}, append([]string{"inventory.h/fall"}, diedCalls[2:]...)
				if note {
					b.flags = []string{"-Xlinker", `--package-metadata={"type":"deb","os":"debian"}`}
				}
				w := newTraceTwin(t, "fault", b)
				core, _ := w.core(t)
				out := t.TempDir()
				if text, err := producers.combined(t, exec.Command("unshare", "-m", "true")); err != nil {
					testenv.Forbidden(t, "a mount namespace", string(text))
				}
				run(t, nil, "unshare", "-m", filepath.Join("testdata", "twin", "coredump.sh"), out, feeder, "4711", "fault", w.program, core)
				logs := make(map[string][]byte)
				for _, form := range []string{"info", "short", "export"} {
					log, err := os.ReadFile(filepath.Join(out, form))
					if err != nil || len(log) == 0 {
						t.Fatalf("%s: %v", form, err)
					}
					logs[form] = log
				}
				w.wantChain(t, w.frames(t, logs["info"]), calls...)
				w.wantOnce(t, logs["info"])
				if !note {
					w.wantNothing(t, logs["info"])
					return
				}
				w.replace(t) // the build IDs identify the right files
				w.wantChain(t, w.frames(t, logs["info"]), calls...)
				w.wantChain(t, w.frames(t, logs["short"]), calls...)
				_, field, _ := bytes.Cut(logs["export"], []byte("\nCOREDUMP_PACKAGE_JSON="))
				field, _, _ = bytes.Cut(field, []byte("\n"))
				message := regexp.MustCompile(`(?m)^ *Module .*\n`).ReplaceAll(logs["short"], nil)
				w.wantChain(t, w.frames(t, fmt.Appendf(nil, "COREDUMP_PACKAGE_JSON=%s\n%s", field, message)), calls...)
			})
		}
	}
}
