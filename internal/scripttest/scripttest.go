// Package scripttest runs scripts of command lines, which test a command. Only tests import it.
package scripttest

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Run runs the scripts in testdata/script with the variables vars. Each script shows one behaviour.
// $TESTDATA is the folder of the project's test data. Scripts may use cmds and exits, as in exits 2
// symfilter --what. UPDATE=1 rewrites the expected output in the scripts.
func Run(t *testing.T, vars map[string]string, cmds map[string]func(*testscript.TestScript, bool, []string)) {
	data, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]func(*testscript.TestScript, bool, []string){"exits": exits}
	maps.Copy(all, cmds)
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		UpdateScripts:      os.Getenv("UPDATE") != "",
		Cmds:               all,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TESTDATA", data)
			// not testscript's /no-home, which a test as root would create for all other users
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			for name, value := range vars {
				e.Setenv(name, value)
			}
			return nil
		},
	})
}

// exits runs a command that must end with this code: exits 2 symfilter --what.
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
