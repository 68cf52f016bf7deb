//go:build linux

package integration

import (
	"archive/zip"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

var runBy = regexp.MustCompile("(?m)^<!-- run by (\\w+)[^\n]*-->\n```sh manual\n((?s:.*?))^```$")

// linesFor returns the commands of a page of docs in blocks that name the test.
func linesFor(t *testing.T, page, test string) (lines []string) {
	t.Helper()
	for _, m := range runBy.FindAllStringSubmatch(readFile(t, filepath.Join("..", "docs", page)), -1) {
		if m[1] == test {
			lines = append(lines, strings.Split(strings.TrimSpace(m[2]), "\n")...)
		}
	}
	return lines
}

// readerFolder makes a folder with testdata's log and debug files, and programs that print the log:
// a server, ssh, kubectl and adb.
func readerFolder(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	log := readFile(t, filepath.Join(checkout, "testdata", "asan.log"))
	debug := filepath.Join(checkout, "testdata", "debug")
	const native = "app/build/intermediates/merged_native_libs"
	for _, folder := range []string{"log", "out", native} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"crash.log": log, "log/app.log": log, "server": "#!/bin/sh\ncat crash.log >&2\n"}
	for _, name := range []string{"ssh", "kubectl", "adb"} {
		files[name] = "#!/bin/sh\ncat crash.log\n"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"symfilter": command, "out/symbols": debug, native + "/release": debug,
		"libledger.so": filepath.Join(debug, ".build-id", "ee", "cd138796b4297ca7ee7bb08854e1173fee4bff.debug"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(dir, "native-debug-symbols.zip"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(debug)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The commands of the pages must print names. Programs and servers of the test replace the machines
// and servers that the commands need.
func TestCommandsOfPagesNameFrames(t *testing.T) {
	t.Parallel()
	need(t, "less", "addr2line")
	debug := filepath.Join(checkout, "testdata", "debug", ".build-id")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, found := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/buildid/"), "/debuginfo")
		if !found || len(id) != 40 {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, filepath.Join(debug, id[:2], id[2:]+".debug"))
	}))
	t.Cleanup(server.Close) // after the subtests
	const frame = `Server::cost\(Request const&\) const.*/src/server/server\.cc`
	for _, page := range []struct {
		name  string
		lines int
		want  string
		env   string
	}{
		{"usage.md", 5, frame, "SYMFILTER_SYMBOL_PATH=out/symbols"},
		{"kubernetes.md", 1, frame, "A="},
		{"start/android.md", 2, frame, "A="},
		{"compare.md", 2, `Pool<ledger::Order, 64ul>::destroy\(Pool<ledger::Order, 64ul>\*\).*/src/inventory/pool\.h:18`, "A="},
		{"debuginfod.md", 3, frame, "A="},
		{"operations.md", 1, `da43cc177c674286dc64206eebed748fde112bed`, "A="},
	} {
		t.Run(page.name, func(t *testing.T) {
			t.Parallel()
			dir, ran := readerFolder(t), 0
			at := strings.NewReplacer("/var/log/app/", filepath.Join(dir, "log")+"/", "/var/log/symbolized/", filepath.Join(dir, "log")+"/", "https://debuginfod.elfutils.org", server.URL)
			for _, line := range linesFor(t, page.name, "TestCommandsOfPagesNameFrames") {
				if strings.HasPrefix(line, "symfilter --debuginfod ") {
					continue // needs the system's servers
				}
				ran++
				out, errs := runLine(t, dir, at.Replace(line), page.env, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
				if plain := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(out+errs, ""); !regexp.MustCompile(page.want).MatchString(plain) {
					t.Errorf("%s prints\n%s\n%s", line, out, errs)
				}
			}
			if ran != page.lines {
				t.Errorf("%d commands, want %d", ran, page.lines)
			}
		})
	}
}

// The commands of operations.md and usage.md must check the example and start the daemon. They send
// the log to the daemon with curl, and must print names.
func TestCommandsOfTheDaemonPrintNames(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	const test = "TestCommandsOfTheDaemonPrintNames"
	dir, address := readerFolder(t), testenv.FreeAddress(t)
	config := "symbols: {no_default_debug_directories: true, debug_file_directories: [" + checkout + "/testdata/debug]}\n" +
		"pipelines:\n  web: {input: {http: \"" + address + "\"}, output: {peer: true}}\n"
	if err := os.WriteFile(filepath.Join(dir, "app.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"symfilterd": daemonCommand(t), "examples": filepath.Join(checkout, "examples")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	lines := append(linesFor(t, "operations.md", test), linesFor(t, "usage.md", test)...)
	if len(lines) != 3+3+3 {
		t.Fatalf("%d commands:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	golden := readFile(t, filepath.Join("..", "testdata", "asan.golden"))
	for _, line := range lines {
		cmd := exec.Command("sh", "-c", strings.NewReplacer("127.0.0.1:8033", address, "make build && ", "", "--config FILE", "--config app.yaml", "./symfilterd", "exec ./symfilterd").Replace(line))
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "http_proxy=")
		switch {
		case strings.HasPrefix(line, "make build "), strings.HasPrefix(line, "# "):
			// TestPagesOfDocsWorkAsWritten runs the build
		case strings.Contains(line, "--check"):
			out, _ := cmd.CombinedOutput()
			if rest := regexp.MustCompile(`(?m)^examples/daemon/symfilter\.yaml: .* does not exist: create it\n`).ReplaceAll(out, nil); len(rest) > 0 {
				t.Errorf("%s prints\n%s", line, out)
			}
		case strings.Contains(line, "--config FILE"):
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				cmd.Process.Signal(syscall.SIGINT)
				if err := cmd.Wait(); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}()
			until(t, "the daemon listens", func() bool {
				c, err := net.Dial("tcp", address)
				if err == nil {
					c.Close()
				}
				return err == nil
			})
		case strings.HasPrefix(line, "curl "):
			cmd.Stdin = strings.NewReader(readFile(t, filepath.Join(dir, "crash.log")))
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if strings.Contains(line, "format=json") {
				if !strings.Contains(string(out), `"function":"Server::cost(Request const&) const"`) {
					t.Errorf("%s prints\n%s", line, out)
				}
			} else if diff := cmp.Diff(golden, string(out)); diff != "" {
				t.Errorf("%s: want (-), got (+):\n%s", line, diff)
			}
		case !strings.HasPrefix(line, "./symfilterd --config examples/daemon/symfilter.yaml "):
			t.Errorf("not run: %s", line)
		}
	}
}

// The command of releasing.md must work for a commit without a tag.
func TestTheCommandForASnapshotMakesOne(t *testing.T) {
	testenv.OnlyLong(t) // compiles and packs for half a minute
	need(t, "git")
	lines := linesFor(t, "releasing.md", "TestTheCommandForASnapshotMakesOne")
	if len(lines) != 1 {
		t.Fatalf("%d commands, want 1", len(lines))
	}
	tree, output := snapshot(t), filepath.Join(t.TempDir(), "output")
	cmd := exec.Command("sh", "-c", strings.Replace(lines[0], "OUTPUT", output, 1))
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made, err := os.ReadDir(output)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range made {
		got = append(got, regexp.MustCompile(`0\.0\.0[-~]\d{14}[-_][0-9a-f]{12}`).ReplaceAllString(e.Name(), "VERSION"))
	}
	want := []string{
		"SHA256SUMS", "symfilter-VERSION-1.x86_64.rpm", "symfilter_VERSION-1_amd64.deb", "symfilter_VERSION_image.tar",
		"symfilter_VERSION_linux_amd64.cdx.json", "symfilter_VERSION_linux_amd64.tar.gz",
		"symfilterd_VERSION_image.tar", "symfilterd_VERSION_linux_amd64.cdx.json",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
