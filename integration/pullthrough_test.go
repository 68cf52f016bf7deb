//go:build linux

package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/testenv"
)

// Clients of debuginfod must get files, sources and lines from symfilterd. symfilterd must request
// each file only once from another debuginfod, and serve it even after that debuginfod has ended.
func TestClientsOfDebuginfodAskTheDaemon(t *testing.T) {
	t.Parallel()
	need(t, "gcc", "strip", "gdb", "debuginfod", "debuginfod-find", "eu-addr2line")
	built := t.TempDir()
	source := filepath.Join(built, "shop.c")
	text := "int total(int n) {\n  return n * 3; // line 2\n}\n\nint main(int argc, char **argv) {\n  return total(argc);\n}\n"
	if err := os.WriteFile(source, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(built, "shop")
	run(t, nil, "gcc", "-g", "-O0", "-Wl,--build-id", "-o", program, source)
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	id, err := buildid.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	stripped := filepath.Join(t.TempDir(), "shop")
	run(t, nil, "strip", "-o", stripped, program)
	main := regexp.MustCompile(`(?m)^([0-9a-f]+) T total$`).FindStringSubmatch(run(t, nil, "nm", program))
	if main == nil {
		t.Fatal("the program has no function total")
	}

	behind := runDebuginfod(t, built)
	addr := testenv.FreeAddress(t)
	d := startDaemon(t, "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache, debuginfod_urls: [\""+behind.url+"\"]}\n"+
		"service: {listen: \""+addr+"\", debuginfod: true}\n")
	d.ready()
	url := "http://" + addr
	clients := func(when string) {
		t.Helper()
		cache := t.TempDir() // cache of the clients, empty at first
		for kind, want := range map[string]string{"debuginfo": string(data), "executable": string(data), "source": text} {
			args := []string{kind, id.String()}
			if kind == "source" {
				args = append(args, source)
			}
			if got, err := os.ReadFile(debuginfodFind(t, url, cache, args...)); err != nil || string(got) != want {
				t.Errorf("%s: debuginfod-find %s got %d bytes (%v), want %d", when, kind, len(got), err, len(want))
			}
		}
		for _, tt := range []struct{ name, want string }{
			{"eu-addr2line -f -e " + stripped + " 0x" + main[1], "total\n" + source + ":1"},
			{"gdb -nx -batch -iex 'set debuginfod enabled on' -ex 'list total' -ex 'info line total' " + stripped, "return n * 3; // line 2"},
		} {
			cmd := exec.Command("sh", "-c", tt.name)
			cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+url, "DEBUGINFOD_CACHE_PATH="+t.TempDir(), "HOME="+t.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("%s: %s: %v, without %q:\n%s", when, tt.name, err, tt.want, out)
			}
		}
	}
	clients("with the server behind")
	if got := behind.requests(t); got != 3 {
		t.Errorf("the server behind got %d requests, want one for the debug file, the program and the source file", got)
	}
	behind.stop()
	// with the source file in place, gdb would read that file and not ask symfilterd
	if err := os.Rename(built, built+".gone"); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(built + ".gone")
	clients("without it")
}
