package housetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/symfilter/symfilter"

// direction lists the packages of this module that each package may import. Commands and programs
// for development may import every package.
var direction = map[string][]string{
	// the root package
	"":                    {"filter", "symbolize", "buildid", "debuginfod", "internal/report", "internal/access"},
	"internal/input":      {"filter", "rtrace", "internal/marks", "internal/checkpoint", "internal/lines", "internal/escape", "internal/unpack", "internal/access"},
	"internal/dialect":    {"buildid"},
	"internal/judge":      {"internal/dialect", "buildid", "internal/object", "internal/disasm"},
	"filter":              {"internal/dialect", "internal/judge", "internal/marks", "markup", "sgr", "symbolize", "buildid", "internal/layout", "internal/report", "internal/checkpoint", "internal/lines", "internal/jsonout", "internal/escape", "internal/disasm", "internal/access", "internal/object", "internal/prefixmap"},
	"internal/marks":      {"internal/dialect"},
	"internal/llvmfilter": {"symbolize", "buildid", "internal/lines"},
	"internal/asis":       {"symbolize", "buildid", "internal/object", "internal/lines", "internal/escape"},
	"valgrind":            {"markup", "internal/findings", "internal/report", "symbolize", "buildid", "internal/object", "internal/jsonout", "internal/wording", "internal/escape", "internal/access"},
	"callgrind":           {"markup", "internal/report", "symbolize", "internal/source", "internal/stacks", "internal/lines", "internal/jsonout", "internal/wording", "internal/escape", "internal/demangle"},
	"rtrace":              {"markup", "internal/findings", "internal/report", "symbolize", "internal/stacks", "internal/object", "internal/lines", "internal/jsonout", "internal/escape", "internal/access"},
	"internal/profile":    {"internal/report", "internal/mapped", "symbolize", "buildid", "internal/stacks", "internal/object", "internal/lines", "internal/wording", "internal/escape", "internal/demangle", "internal/access"},
	"markup":              {"buildid", "internal/access"},
	"internal/layout":     {"internal/dialect", "internal/judge", "markup", "sgr", "internal/escape", "internal/access"},
	"internal/backtrace":  {"filter", "internal/findings", "internal/report", "internal/lines", "internal/escape", "internal/access"},
	"internal/faults":     {"filter", "internal/backtrace", "internal/findings", "internal/marks", "internal/lines"},
	"internal/page":       {"filter", "internal/backtrace", "internal/faults", "internal/findings", "internal/layout", "internal/html", "internal/dialect", "internal/lines", "internal/escape", "markup"},
	"internal/findings":   {"internal/report", "symbolize", "buildid"},
	"internal/report":     {"markup", "symbolize", "buildid", "internal/object", "internal/access", "internal/prefixmap"},
	"internal/source":     {"symbolize", "buildid", "internal/escape", "internal/access", "internal/prefixmap"},
	"sgr":                 {},
	"symbolize":           {"buildid", "internal/object", "internal/pagefault", "internal/dwarf", "internal/gopcln", "internal/symindex", "internal/demangle", "internal/access"},
	"debuginfod":          {"buildid", "internal/newfile", "internal/access"},
	"buildid":             {"internal/object", "internal/newfile", "internal/unpack", "internal/access"},
	"internal/html":       {"sgr", "internal/escape"},
	"internal/publish":    {"internal/findings", "internal/report", "internal/gate", "internal/jsonout", "internal/escape"},
	"internal/gate":       {"internal/findings", "internal/escape"},
	"internal/lines":      {},
	"internal/batch":      {"symbolize", "buildid", "internal/jsonout"},
	"internal/jsonout":    {"symbolize", "buildid", "internal/escape"},
	"internal/dwarf":      {"internal/object"},
	"internal/gopcln":     {"internal/object"},
	"internal/symindex":   {"internal/newfile"},
	"internal/object":     {"internal/unpack", "internal/pagefault"},
	"internal/unpack":     {"internal/inflate"},
	"internal/inflate":    {"internal/pagefault"},
	"internal/pagefault":  {},
	"internal/newfile":    {},
	"internal/checkpoint": {},
	"internal/access":     {},
	"internal/prefixmap":  {"buildid"},

	"internal/containerlog": {},

	"internal/contextfile": {"internal/newfile", "internal/checkpoint"},
	"internal/escape":      {},
	"internal/stacks":      {"internal/escape"},
	// only for commands: a library must not confine the process of its caller
	"internal/sandbox":     {},
	"internal/address":     {},
	"internal/serial":      {},
	"internal/seldom":      {},
	"internal/service":     {},
	"internal/startup":     {},
	"internal/cli":         {},
	"internal/child":       {},
	"internal/mapped":      {"internal/object"},
	"internal/remote":      {"internal/wording"},
	"internal/procmaps":    {"filter", "buildid", "internal/object"},
	"internal/written":     {},
	"internal/wording":     {"internal/escape"},
	"internal/bundle":      {"filter", "buildid", "internal/wording"},
	"internal/doctor":      {"", "filter", "symbolize", "buildid", "debuginfod", "internal/input", "internal/profile", "internal/dialect", "internal/judge", "internal/report", "internal/object", "internal/wording", "internal/access"},
	"internal/disasm":      {},
	"internal/demangle":    {},
	"internal/fuzztest":    {},                                          // only tests may import it
	"internal/testenv":     {"internal/fuzztest"},                       // only tests may import it
	"internal/logtest":     {},                                          // only tests may import it
	"internal/batchtest":   {"", "internal/batch", "internal/fuzztest"}, // only tests may import it
	"internal/idtest":      {"buildid"},                                 // only tests may import it
	"internal/pagetest":    {},                                          // only tests may import it
	"internal/scripttest":  {},                                          // only tests may import it
	"internal/walkthrough": {},                                          // only tests may import it
	"internal/lineage":     {},
	"internal/follow":      {"internal/lineage", "internal/unpack", "internal/wording"},
	// protocols of the daemon's service
	"internal/mozilla":      {"symbolize", "buildid", "internal/batch"},
	"internal/symbolicator": {"symbolize", "buildid", "internal/batch"},

	// a separate binary: its packages do not slow down the start of the command
	"internal/daemon": {"", "internal/input", "filter", "internal/follow", "symbolize", "debuginfod", "internal/doctor", "internal/service", "internal/sandbox", "internal/seldom", "internal/contextfile", "internal/checkpoint", "internal/written", "internal/unpack", "internal/access", "internal/batch", "internal/mozilla", "internal/symbolicator", "internal/profile", "internal/report", "internal/object", "buildid"},
}

var free = []string{"cmd/symfilter", "cmd/symfilterd", "bench", "scripts/gotest", "scripts/scoreboard", "integration", "internal/housetest", "internal/demangle/gen", "examples/emit/go"}

// thirdParties lists the modules that may be imported. testParties lists the modules that only
// tests may import.
var (
	thirdParties = []string{
		"github.com/klauspost/compress",
		"github.com/ulikunitz/xz",
		"github.com/spf13/cobra",
		"github.com/spf13/pflag", // types in cobra's interface
		"github.com/fsnotify/fsnotify",
		"github.com/cenkalti/backoff/v5",
		"go.yaml.in/yaml/v3",
		"github.com/prometheus/client_golang",
		"golang.org/x/arch",
		"golang.org/x/sys",
		"golang.org/x/term",
	}
	testParties = []string{
		"github.com/prometheus/common", // parses the exposed metrics
		"github.com/go-delve/delve/pkg/dwarf/godwarf",
		"github.com/google/go-cmp",
		"github.com/google/pprof", // reads the output of the command profile, and the inputs of tests
		"github.com/google/pprof/profile",
		"github.com/ianlancetaylor/demangle", // the source of internal/demangle
		"github.com/rogpeppe/go-internal",
		"github.com/santhosh-tekuri/jsonschema/v6",
		"go.uber.org/goleak",
		"golang.org/x/net/html",
	}
)

// This table lists the imports that few packages may use outside of tests. Each row has these
// packages.
var only = map[string][]string{
	"github.com/fsnotify/fsnotify": {"internal/follow"},
	"go.yaml.in/yaml/v3":           {"internal/daemon"},

	"github.com/prometheus/client_golang/prometheus":          {"internal/daemon"},
	"github.com/prometheus/client_golang/prometheus/promhttp": {"internal/daemon"},

	// no other package uses the network or starts programs
	"net":      {"debuginfod", "internal/daemon", "internal/service", "internal/testenv", "bench"},
	"net/http": {"debuginfod", "internal/daemon", "internal/remote", "bench"},
	"os/exec":  {"internal/child", "bench", "scripts/gotest", "scripts/scoreboard", "internal/testenv", "internal/walkthrough", "internal/scripttest"},

	"golang.org/x/net/html": {"internal/pagetest"},

	"github.com/rogpeppe/go-internal/testscript": {"internal/scripttest"},
	"github.com/rogpeppe/go-internal/txtar":      {"internal/logtest"},
}

// This table lists packages that not even tests may import. delve's package line writes to standard
// output. Its packages op and frame end the process on hostile bytes.
var never = []string{
	"github.com/go-delve/delve/pkg/dwarf/line",
	"github.com/go-delve/delve/pkg/dwarf/op",
	"github.com/go-delve/delve/pkg/dwarf/frame",
}

// This table lists packages that the tests of a command may not import. Its scripts start the test
// binary hundreds of times, and half of the start was the initialization of jsonschema.
var slowStart = map[string][]string{
	"cmd/symfilter": {"github.com/santhosh-tekuri/jsonschema/v6"},
}

var badNames = regexp.MustCompile(`^(utils?|common|types?|config|log|logs|helpers?|misc|shared|base|lib)$`)

type listed struct {
	ImportPath, Name, Doc              string
	Imports, TestImports, XTestImports []string
}

func (p listed) path() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func list(t *testing.T, goos string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Doc,Imports,TestImports,XTestImports", module+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list names no package")
	}
	return all
}

// The table must equal the imports on all systems together: an import that is gone must be removed
// from the table.
func TestImportsFollowTheDirection(t *testing.T) {
	unused := make(map[string][]string)
	for pkg, imports := range direction {
		unused[pkg] = slices.Clone(imports)
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, p := range list(t, goos) {
			for _, fault := range faults(p) {
				t.Errorf("%s: %s", goos, fault)
			}
			unused[p.path()] = slices.DeleteFunc(unused[p.path()], p.imports)
		}
	}
	for pkg, imports := range unused {
		if len(imports) > 0 {
			t.Errorf("%s does not import %s: take it out of the table of directions", cmp.Or(pkg, "the root"), strings.Join(imports, " and "))
		}
	}
}

func (p listed) imports(pkg string) bool {
	return slices.Contains(p.Imports, strings.TrimSuffix(module+"/"+pkg, "/"))
}

func faults(p listed) []string {
	var all []string
	fault := func(format string, args ...any) {
		all = append(all, p.path()+" "+fmt.Sprintf(format, args...))
	}
	allowed, known := direction[p.path()]
	if !known && !slices.Contains(free, p.path()) {
		fault("is not in the table of directions")
		return all
	}
	for _, imp := range p.Imports {
		rel, own := strings.CutPrefix(imp, module+"/")
		if imp == module {
			rel, own = "", true
		}
		switch {
		case own:
			if known && !slices.Contains(allowed, rel) {
				fault("may not import %s", rel)
			}
		case only[imp] != nil:
			if owners := only[imp]; !slices.Contains(owners, p.path()) {
				fault("may not import %s, which is for %s", imp, strings.Join(owners, " and "))
			}
		case !isStd(imp) && (!under(imp, thirdParties) || under(imp, never)):
			fault("may not import %s", imp)
		}
	}
	for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
		if strings.HasPrefix(imp, module) || isStd(imp) {
			continue
		}
		if under(imp, never) || under(imp, slowStart[p.path()]) || !under(imp, thirdParties) && !under(imp, testParties) {
			fault("may not import %s in its tests", imp)
		}
	}
	return all
}

func isStd(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

func under(imp string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return imp == root || strings.HasPrefix(imp, root+"/") })
}

func TestFaultsOfImports(t *testing.T) {
	tests := []struct {
		name string
		p    listed
		want string
	}{
		{"against the direction", listed{ImportPath: module + "/filter", Imports: []string{"io", module + "/internal/dwarf"}}, "filter may not import internal/dwarf"},
		{"with the direction", listed{ImportPath: module + "/filter", Imports: []string{module + "/symbolize"}}, ""},
		{"a new package", listed{ImportPath: module + "/extra"}, "extra is not in the table of directions"},
		{"a third party without a place", listed{ImportPath: module + "/sgr", Imports: []string{"github.com/nxadm/tail"}}, "sgr may not import github.com/nxadm/tail"},
		{"a third party of tests", listed{ImportPath: module + "/sgr", Imports: []string{"github.com/google/go-cmp/cmp"}}, "sgr may not import github.com/google/go-cmp/cmp"},
		{"a third party of tests, in tests", listed{ImportPath: module + "/sgr", TestImports: []string{"github.com/google/go-cmp/cmp"}}, ""},
		{"another's own third party", listed{ImportPath: module + "/sgr", Imports: []string{"github.com/fsnotify/fsnotify"}}, "sgr may not import github.com/fsnotify/fsnotify, which is for internal/follow"},
		{"a program is started", listed{ImportPath: module + "/buildid", Imports: []string{"os", "os/exec"}}, "buildid may not import os/exec, which is for internal/child and bench and scripts/gotest and scripts/scoreboard and internal/testenv and internal/walkthrough and internal/scripttest"},
		{"its own third party", listed{ImportPath: module + "/internal/follow", Imports: []string{"github.com/fsnotify/fsnotify"}}, ""},
		{"an oracle of tests", listed{ImportPath: module + "/internal/dwarf", Imports: []string{"github.com/go-delve/delve/pkg/dwarf/godwarf"}}, "internal/dwarf may not import github.com/go-delve/delve/pkg/dwarf/godwarf"},
		{"a slow start of scripts", listed{ImportPath: module + "/cmd/symfilter", TestImports: []string{"github.com/santhosh-tekuri/jsonschema/v6"}}, "cmd/symfilter may not import github.com/santhosh-tekuri/jsonschema/v6 in its tests"},
		{"delve's line, in a test of the command", listed{ImportPath: module + "/cmd/symfilter", XTestImports: []string{"github.com/go-delve/delve/pkg/dwarf/line"}}, "cmd/symfilter may not import github.com/go-delve/delve/pkg/dwarf/line in its tests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(faults(tt.p), "\n"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestArchitectureListsThePackagesInOrder(t *testing.T) {
	_, section, _ := strings.Cut(string(read(t, "ARCHITECTURE.md")), "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, p := range list(t, "linux") {
		names = append(names, cmp.Or(p.path(), "symfilter"))
	}
	for _, fault := range faultsOfOrder(section, names, direction) {
		t.Error(fault)
	}
}

var packageRow = regexp.MustCompile("(?m)^\\| `([^`\n]+)`.* \\| .*[^ |\n].* \\|$")

// faultsOfOrder returns the faults of a table: a missing package, a package with two rows, a row
// for a package that does not exist, or an import above its importer.
func faultsOfOrder(table string, packages []string, direction map[string][]string) (all []string) {
	row := make(map[string]int)
	for i, m := range packageRow.FindAllStringSubmatch(table, -1) {
		if row[m[1]] > 0 {
			all = append(all, m[1]+" has two rows")
		}
		row[m[1]] = i + 1
		if !slices.Contains(packages, m[1]) {
			all = append(all, m[1]+" is not a package")
		}
	}
	for _, name := range packages {
		if row[name] == 0 {
			all = append(all, name+" has no row")
			continue
		}
		imports := direction[name]
		if name == "symfilter" {
			imports = direction[""]
		}
		for _, imp := range imports {
			if imp = cmp.Or(imp, "symfilter"); row[imp] > 0 && row[imp] < row[name] {
				all = append(all, name+" imports "+imp+", which is above it")
			}
		}
	}
	return all
}

func TestFaultsOfOrder(t *testing.T) {
	direction := map[string][]string{"": {"filter"}, "filter": {"sgr"}, "doctor": {"", "sgr"}, "sgr": {}}
	packages := []string{"doctor", "symfilter", "filter", "sgr"}
	const head, doctor, root, filter, sgr = "| folder | idea |\n|---|---|\n| **Logs** | |\n", "| `doctor` | why |\n", "| `symfilter` (the root) | all |\n", "| `filter` | a pass |\n", "| `sgr` | colour |\n"
	for _, tt := range []struct{ name, table, want string }{
		{"in order", doctor + root + filter + sgr, ""},
		{"an import above", doctor + root + sgr + filter, "filter imports sgr, which is above it"},
		{"the root above", root + doctor + filter + sgr, "doctor imports symfilter, which is above it"},
		{"below what it imports", doctor + filter + root + sgr, "symfilter imports filter, which is above it"},
		{"a package without a row", doctor + root + filter, "sgr has no row"},
		{"a row without an idea", doctor + root + filter + "| `sgr` |  |\n", "sgr has no row"},
		{"two rows", doctor + root + filter + sgr + sgr, "sgr has two rows"},
		{"a package that is gone", doctor + root + filter + "| `old` | gone |\n" + sgr, "old is not a package"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(faultsOfOrder(head+tt.table, packages, direction), "\n"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDirectionHasNoCircle(t *testing.T) {
	var visit func(pkg string, above []string)
	visit = func(pkg string, above []string) {
		if slices.Contains(above, pkg) {
			t.Fatalf("circle: %s", strings.Join(append(above, pkg), " -> "))
		}
		for _, imp := range direction[pkg] {
			visit(imp, append(slices.Clone(above), pkg))
		}
	}
	for pkg := range direction {
		visit(pkg, nil)
	}
}

func TestPackageNamesSayWhatThePackageDoes(t *testing.T) {
	for _, p := range list(t, "linux") {
		if badNames.MatchString(p.Name) || badNames.MatchString(path.Base(p.path())) {
			t.Errorf("%s: the name %s says nothing", p.path(), p.Name)
		}
		if p.Name != "main" && p.path() != "" && p.Name != path.Base(p.path()) {
			t.Errorf("%s: the package is named %s", p.path(), p.Name)
		}
	}
}

func TestEveryPackageSaysItsIdeaFirst(t *testing.T) {
	for _, p := range list(t, "linux") {
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			base := path.Base(p.path())
			want = strings.ToUpper(base[:1]) + base[1:] + " "
		}
		// go list returns only the first sentence
		if !strings.HasPrefix(p.Doc, want) || !strings.HasSuffix(p.Doc, ".") || len(p.Doc) < len(want)+20 {
			t.Errorf("%s: the doc of the package has to begin with a sentence %q…; got %q", p.path(), want, p.Doc)
		}
	}
}

// The command must link no package of the daemon, so that it starts fast.
func TestTheCommandLinksNothingOfTheDaemon(t *testing.T) {
	for _, tt := range []struct {
		pkg  string
		want bool // whether pkg links the daemon; true once, so the test can fail
	}{{"cmd/symfilter", false}, {"cmd/symfilterd", true}} {
		out, err := exec.Command("go", "list", "-deps", module+"/"+tt.pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		linked := strings.Fields(string(out))
		for _, root := range []string{module + "/internal/daemon", module + "/internal/service", "github.com/prometheus", "google.golang.org/protobuf", "go.yaml.in/yaml"} {
			got := slices.ContainsFunc(linked, func(p string) bool { return under(p, []string{root}) })
			if got != tt.want {
				t.Errorf("%s links %s: %v, want %v", tt.pkg, root, got, tt.want)
			}
		}
	}
}
