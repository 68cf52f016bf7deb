package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// lastWordsEnv sets the time that an interrupt leaves the producer of the log.
const lastWordsEnv = "TEST_LAST_WORDS"

// asCommand in the environment makes the test binary be symfilter.
const asCommand = "TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if words, err := time.ParseDuration(os.Getenv(lastWordsEnv)); err == nil {
		lastWords = words
	}
	if os.Getenv(asCommand) != "" {
		main()
	}
	for _, v := range os.Environ() { // what the developer's environment asks for must not reach the tests
		name, _, _ := strings.Cut(v, "=")
		if filepath.Base(os.Args[0]) != "symfilter" && (strings.HasPrefix(name, "DEBUGINFOD_") || strings.HasPrefix(name, "SYMFILTER_")) {
			os.Unsetenv(name)
		}
	}
	// A shell ignores the one in background jobs, nohup the other, and the commands would inherit that.
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // each of hundreds of commands would end a second late
	testscript.Main(m, map[string]func(){"symfilter": main})
}

// The scripts are in testdata/script, one behaviour each. They have the
// project's test data as $TESTDATA.
func TestScripts(t *testing.T) {
	data, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		UpdateScripts:      os.Getenv("UPDATE") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"sgr":   sgr,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("TESTDATA", data)
			e.Setenv("n", "\n")
			e.Setenv("SYMFILTER_NO_DEFAULT_DEBUG_DIRECTORIES", "true") // what is installed must not reach the tests
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

// sgr makes control sequences of <31> and the like in a file.
func sgr(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sgr file")
	}
	text := regexp.MustCompile(`<([0-9;]+)>`).ReplaceAllString(ts.ReadFile(args[0]), "\x1b[${1}m")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o666))
}
