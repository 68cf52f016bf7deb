package collector

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/symfilter/symfilter"
)

// Each option of symbols that names a place of debug files must have an effect: a debug file at
// that place must be found.
func TestPlacesOfDebugFiles(t *testing.T) {
	const id = "eecd138796b4297ca7ee7bb08854e1173fee4bff"
	file, err := filepath.Abs(filepath.Join(debugFiles, ".build-id", id[:2], id[2:]+".debug"))
	if err != nil {
		t.Fatal(err)
	}
	ids := filepath.Join(t.TempDir(), "ids.txt")
	if err := os.WriteFile(ids, []byte(id+" "+file+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := linesOf(t, "crash.log")
	for name, test := range map[string]struct {
		symbols Symbols
		want    bool
	}{
		"none":                   {Symbols{}, false},
		"symbol_paths":           {Symbols{SymbolPaths: []string{file}}, true},
		"ids_files":              {Symbols{IDsFiles: []string{ids}}, true},
		"build_id_directories":   {Symbols{BuildIDDirectories: []string{filepath.Join(debugFiles, ".build-id")}}, true},
		"debug_file_directories": {Symbols{DebugFileDirectories: []string{debugFiles}}, true},
	} {
		c := testConfig()
		test.symbols.MaxMemory = 64 << 20
		c.Symbols = test.symbols
		p := startBare(t, c)
		ld := batchOf("a", lines...)
		p.do(ld)
		if got := strings.Contains(firstBody(ld, 33), "ledger.cc:27:16"); got != test.want {
			t.Errorf("%s: named %t, want %t: %s", name, got, test.want, firstBody(ld, 33))
		}
		if got := p.shared.symbols.Symbolizer.Stats().Budget; got > 64<<20 {
			t.Errorf("%s: a budget of %d bytes, want at most max_memory", name, got)
		}
	}
}

// At its start, the Collector must warn about paths without debug files. In the log, a wrong path
// looks like a missing debug file.
func TestPlacesWithoutDebugFilesAreLogged(t *testing.T) {
	dir := t.TempDir()
	c := testConfig()
	c.Symbols.SymbolPaths = []string{filepath.Join(dir, "none"), dir}
	c.Symbols.DebugFileDirectories = []string{symfilter.DebugDir, debugFiles, dir}
	set := nopSettings()
	core, logged := observer.New(zapcore.WarnLevel)
	set.Logger = zap.New(core)
	p, err := NewFactory().CreateLogs(context.Background(), set, c, new(consumertest.LogsSink))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown(context.Background())
	var got []string
	for _, e := range logged.All() {
		got = append(got, e.Message)
	}
	want := []string{
		"symbols::symbol_paths: " + filepath.Join(dir, "none") + " does not exist",
		"symbols::debug_file_directories: " + dir + " has no .build-id folder; if it holds programs or debug files, list it in symbol_paths instead",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestOptions(t *testing.T) {
	for _, open := range []bool{false, true} {
		c := testConfig()
		c.Symbols.ModulePaths = open
		if o := startBare(t, c).options(); o.Dialects.NoPaths == open {
			t.Errorf("module_paths %t: NoPaths is %t", open, o.Dialects.NoPaths)
		}
	}
	// the two batches are of two processes by the default key, but of one process by service.name
	for key, want := range map[string]string{"service.instance.id": "(no module)", "service.name": "ledger.cc:27:16"} {
		c := testConfig()
		c.Key = []string{key}
		p := startBare(t, c)
		lines := linesOf(t, "crash.log")
		for i, text := range [][]string{lines[:32], {lines[33]}} {
			ld := batchOf(string(rune('a'+i)), text...)
			ld.ResourceLogs().At(0).Resource().Attributes().PutStr("service.name", "shop")
			p.do(ld)
			if got := firstBody(ld, 0); i == 1 && !strings.Contains(got, want) {
				t.Errorf("key %s: %q, want %q in it", key, got, want)
			}
		}
	}
	c := testConfig()
	c.BodyFields, c.Attributes = []string{"text"}, []string{"trace"}
	p := startBare(t, c)
	lines := linesOf(t, "crash.log")
	p.do(batchOf("a", lines[:32]...))
	ld := batchOf("a", "")
	lr := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	lr.Body().SetEmptyMap().PutStr("text", lines[33])
	lr.Attributes().PutStr("trace", lines[33])
	lr.Attributes().PutStr("exception.stacktrace", lines[33])
	p.do(ld)
	for name, got := range map[string]string{"body_fields": get(lr.Body().Map(), "text"), "attributes": get(lr.Attributes(), "trace")} {
		if !strings.Contains(got, "ledger.cc:27:16") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := get(lr.Attributes(), "exception.stacktrace"); got != lines[33] {
		t.Errorf("an attribute that is not named has changed: %q", got)
	}
}
