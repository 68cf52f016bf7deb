package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/symfilter/symfilter/internal/daemon"
	"github.com/symfilter/symfilter/internal/scripttest"
	"github.com/symfilter/symfilter/internal/testenv"
)

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // flags in the developer's environment must not affect the tests
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "DEBUGINFOD_") || strings.HasPrefix(name, "LISTEN_") || name == "NOTIFY_SOCKET" {
			os.Unsetenv(name)
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // without this, each command would end a second later
	testscript.Main(m, map[string]func(){"symfilterd": main})
}

func TestScripts(t *testing.T) { scripttest.Run(t, nil, nil) }

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
