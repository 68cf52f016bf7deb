package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/symfilter/symfilter/internal/scripttest"
)

// lastWordsEnv names the environment variable that overrides lastWords, the time for the log's
// producer to finish after Ctrl-C.
const lastWordsEnv = "TEST_LAST_WORDS"

// asCommand names the environment variable that makes the test binary run as symfilter.
const asCommand = "TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if words, err := time.ParseDuration(os.Getenv(lastWordsEnv)); err == nil {
		lastWords = words
	}
	if os.Getenv(asCommand) != "" {
		main()
	}
	for _, v := range os.Environ() { // flags in the developer's environment must not affect the tests
		name, _, _ := strings.Cut(v, "=")
		if filepath.Base(os.Args[0]) != "symfilter" && (strings.HasPrefix(name, "DEBUGINFOD_") || strings.HasPrefix(name, "SYMFILTER_")) {
			os.Unsetenv(name)
		}
	}
	// A shell ignores SIGINT in background jobs, and nohup ignores SIGHUP. The tested commands
	// would inherit this.
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // without this, each of hundreds of commands would end a second later
	testscript.Main(m, map[string]func(){"symfilter": main})
}

func TestScripts(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir("testdata/served")))
	t.Cleanup(server.Close) // after the scripts, which run in parallel
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatalf("go env GOCACHE: %v", err)
	}
	scripttest.Run(t, map[string]string{
		// in a cache of the script's HOME, go tool pprof would be compiled each time
		"GOCACHE":                                strings.TrimSpace(string(cache)),
		"SERVED":                                 server.URL,
		"n":                                      "\n",
		"SYMFILTER_NO_DEFAULT_DEBUG_DIRECTORIES": "true", // installed debug files must not affect the tests
		// on a busy machine, a search may take more than the 2 s of a pipe
		"SYMFILTER_WAIT": "5m",
	}, map[string]func(*testscript.TestScript, bool, []string){"sgr": sgr})
}

// sgr replaces <31> and the like in a file by control sequences.
func sgr(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sgr file")
	}
	text := regexp.MustCompile(`<([0-9;]+)>`).ReplaceAllString(ts.ReadFile(args[0]), "\x1b[${1}m")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o666))
}
