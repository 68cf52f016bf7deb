package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/symfilter/symfilter/daemon"
	"github.com/symfilter/symfilter/internal/testenv"
)

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // what the developer's environment asks for must not reach the tests
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "DEBUGINFOD_") || strings.HasPrefix(name, "LISTEN_") || name == "NOTIFY_SOCKET" {
			os.Unsetenv(name)
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // each command would end a second late
	testscript.Main(m, map[string]func(){"symfilterd": main})
}

// The scripts are in testdata/script, one behaviour each. They have the project's test data as
// $TESTDATA.
func TestScripts(t *testing.T) {
	data, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		UpdateScripts:      os.Getenv("UPDATE") != "",
		Cmds:               map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(e *testscript.Env) error {
			e.Setenv("TESTDATA", data)
			return nil
		},
	})
}

// exits runs a command that must end with this code: exits 2 symfilterd --what.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [argument...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func TestHelpFitsOnOneScreen(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(help(), "\n"), "\n")
	for _, line := range lines {
		if len([]rune(line)) > 80 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	if len(lines) > 34 {
		t.Errorf("%d lines", len(lines))
	}
}

// The manual page and the help have each key with its text.
func TestEveryKeyIsExplained(t *testing.T) {
	page, topic := manPage("1.2.3", "2026-11-20"), strings.Join(strings.Fields(reference()), " ")
	for _, s := range daemon.Sections() {
		for _, k := range s.Keys {
			if !strings.Contains(page, ".B "+strings.ReplaceAll(k.Name, "-", `\-`)+"\n") {
				t.Errorf("%s: %s is not in the manual page", s.Path, k.Name)
			}
			if want := k.Name + " (" + remarks(&k) + ") " + plain(k.Text); !strings.Contains(topic, strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%s: not in the help: %s", s.Path, want)
			}
		}
	}
}

func TestManPageIsTroff(t *testing.T) {
	page := manPage("1.2.3", "2026-11-20")
	if shown := testenv.ShowManPage(t, page); !strings.Contains(shown, "symfilterd --config") {
		t.Errorf("no synopsis in\n%s", shown)
	}
}
