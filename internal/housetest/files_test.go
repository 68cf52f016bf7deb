package housetest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const (
	maxGoLines     = 700       // lines of a Go file: enough for one topic
	maxBinary      = 100 << 10 // bytes of a committed binary: it remains in every clone
	maxReadmeLines = 110       // a page to read in one go
	maxDesign      = 30_000    // bytes of ARCHITECTURE.md, read whole by a newcomer: 45 minutes
	maxReadmeWords = 700       // including its code blocks
	maxReadmeCell  = 100       // characters of a cell of a table: more is prose
	maxComment     = 100       // columns of a line of a comment, where a tab counts four
	maxProse       = 140       // columns of a line of a document, outside of tables and code
)

// root returns the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// committed returns the slash-separated paths of the files that git tracks or would add. Without a
// repository, as in a release archive, it returns all files.
func committed(t *testing.T) []string {
	t.Helper()
	dir := root(t)
	cmd := exec.Command("git", "-c", "safe.directory="+dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = dir
	var all []string
	if out, err := cmd.Output(); err == nil {
		for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
			// git also lists files that were just deleted
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				all = append(all, name)
			}
		}
	} else if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d files", len(all))
	}
	return all
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoFilesAreOfOneTopic(t *testing.T) {
	for _, name := range committed(t) {
		if path.Ext(name) != ".go" {
			continue
		}
		code := read(t, name)
		if bytes.HasPrefix(code, []byte("// Code generated ")) {
			continue // the limit is for files that people read
		}
		if n := bytes.Count(code, []byte("\n")); n > maxGoLines {
			t.Errorf("%s has %d lines, at most %d", name, n, maxGoLines)
		}
	}
}

// machinePaths match paths that exist only on a developer's machine. They are assembled here so
// that they do not match this file.
func machinePaths(t *testing.T) []*regexp.Regexp {
	t.Helper()
	all := []*regexp.Regexp{
		regexp.MustCompile(`/wo` + `rk/[a-z]`),
		regexp.MustCompile(`/ro` + `ot/`),
		regexp.MustCompile(`/Us` + `ers/[A-Za-z]`),
		regexp.MustCompile(`\\Us` + `ers\\[A-Za-z]`),
	}
	for _, dir := range []string{root(t), os.Getenv("HOME")} {
		if strings.Count(dir, string(filepath.Separator)) >= 2 && len(dir) >= 8 {
			all = append(all, regexp.MustCompile(regexp.QuoteMeta(dir)+`\b`))
		}
	}
	return all
}

func TestNoFileNamesADevelopersMachine(t *testing.T) {
	patterns := machinePaths(t)
	for _, name := range committed(t) {
		data := read(t, name)
		for _, re := range patterns {
			if at := re.FindIndex(data); at != nil {
				line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
				t.Errorf("%s:%d: %q", name, line, data[at[0]:min(len(data), at[1]+20)])
			}
		}
	}
}

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0
}

// A committed binary must be in a testdata folder and small. The script that builds it must be in
// the same folder or above it.
func TestBinariesHaveTheirSourceBeside(t *testing.T) {
	all := committed(t)
	for _, name := range all {
		data := read(t, name)
		if !isBinary(data) {
			continue
		}
		if len(data) > maxBinary {
			t.Errorf("%s has %d bytes, at most %d", name, len(data), maxBinary)
		}
		if !builtBeside(name, all) {
			t.Errorf("%s: no script beside it says how it is built", name)
		}
	}
}

// builtBeside reports whether a shell script or a Makefile is in the folder of name or above it, up
// to testdata.
func builtBeside(name string, all []string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if slices.ContainsFunc(all, func(s string) bool {
			return path.Dir(s) == dir && (path.Ext(s) == ".sh" || path.Base(s) == "Makefile")
		}) {
			return strings.Contains("/"+dir+"/", "/testdata/")
		}
		if path.Base(dir) == "testdata" {
			return false
		}
	}
	return false
}

func TestBuiltBeside(t *testing.T) {
	tests := []struct {
		name string
		all  []string
		want bool
	}{
		{"testdata/debug/.build-id/ab/cd.debug", []string{"testdata/build.sh"}, true},
		{"internal/object/testdata/a.elf", []string{"internal/object/testdata/gen.sh"}, true},
		{"internal/object/testdata/a.elf", []string{"testdata/build.sh", "internal/object/build.sh"}, false},
		{"cmd/symfilter/symfilter", []string{"cmd/symfilter/build.sh"}, false},
	}
	for _, tt := range tests {
		if got := builtBeside(tt.name, tt.all); got != tt.want {
			t.Errorf("%s with %q: got %v, want %v", tt.name, tt.all, got, tt.want)
		}
	}
}

func parseGo(t *testing.T, visit func(name string, f *ast.File)) {
	t.Helper()
	for _, name := range committed(t) {
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		visit(name, f)
	}
}

// An init function may only assign functions to variables of the package named access.
func TestNoFileHasAnInit(t *testing.T) {
	parseGo(t, func(name string, f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !setsAccess(fn.Body) {
				t.Errorf("%s: init runs in every program that imports the package", name)
			}
		}
	})
}

// setsAccess reports whether a function body only assigns functions to variables of the package
// named access.
func setsAccess(body *ast.BlockStmt) bool {
	return !slices.ContainsFunc(body.List, func(s ast.Stmt) bool {
		set, ok := s.(*ast.AssignStmt)
		if !ok || len(set.Lhs) != 1 {
			return true
		}
		_, isFunc := set.Rhs[0].(*ast.FuncLit)
		to, ok := set.Lhs[0].(*ast.SelectorExpr)
		if !ok || !isFunc {
			return true
		}
		of, ok := to.X.(*ast.Ident)
		return !ok || of.Name != "access"
	})
}

// An interface may have at most three methods, since it lists only the methods that its consumer
// calls.
func TestInterfacesAreSmall(t *testing.T) {
	const most = 3 // methods
	parseGo(t, func(name string, f *ast.File) {
		if strings.HasSuffix(name, "_test.go") || ast.IsGenerated(f) || strings.Contains(name, "internal/demangle/zcopy_") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok && i.Methods.NumFields() > most {
				t.Errorf("%s: an interface of %d methods, at most %d", name, i.Methods.NumFields(), most)
			}
			return true
		})
	})
}

// Only tests may use the standard library's readers of ELF and DWARF, which are not made for
// hostile files. The constants of these packages may be used.
func TestStandardReadersOfELFAndDWARFAreForTestsOnly(t *testing.T) {
	forbidden := map[string][]string{"debug/elf": {"NewFile", "Open"}, "debug/dwarf": {"New"}}
	parseGo(t, func(name string, f *ast.File) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "examples/") {
			return
		}
		imported := map[string]string{} // local name to path
		for _, imp := range f.Imports {
			p := strings.Trim(imp.Path.Value, `"`)
			if forbidden[p] == nil {
				continue
			}
			local := path.Base(p)
			if imp.Name != nil {
				local = imp.Name.Name
			}
			imported[local] = p
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(forbidden[imported[x.Name]], sel.Sel.Name) {
					t.Errorf("%s uses %s.%s", name, imported[x.Name], sel.Sel.Name)
				}
			}
			return true
		})
	})
}

var (
	testName = regexp.MustCompile(`\b(Test|Fuzz|Benchmark|Example)[A-Z]\w*`)
	script   = regexp.MustCompile(`\w[\w./-]*\.txtar`) // without the ../ of a link
	mdCode   = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	mdLink   = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	mdFence  = regexp.MustCompile("(?s)```.*?```")
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors that code hosts give to the headings of a document.
func anchors(text string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(mdFence.ReplaceAllString(text, ""), -1) {
		all = append(all, "#"+strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

func TestDocumentsNameWhatExists(t *testing.T) {
	all := committed(t)
	functions := map[string]bool{}
	parseGo(t, func(name string, f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				functions[fn.Name.Name] = true
			}
		}
	})
	checked := 0
	for _, name := range all {
		if path.Ext(name) != ".md" {
			continue
		}
		text := string(read(t, name))
		for _, test := range testName.FindAllString(text, -1) {
			checked++
			if !functions[test] {
				t.Errorf("%s: there is no %s", name, test)
			}
		}
		for _, path := range script.FindAllString(text, -1) {
			checked++
			if !slices.Contains(all, path) {
				t.Errorf("%s: there is no %s", name, path)
			}
		}
		for _, m := range mdLink.FindAllStringSubmatch(mdCode.ReplaceAllString(text, ""), -1) {
			checked++
			target := path.Join(path.Dir(name), m[1])
			if m[1] == "" {
				target = name
			}
			switch {
			case !slices.ContainsFunc(all, func(s string) bool { return s == target || strings.HasPrefix(s, target+"/") }):
				t.Errorf("%s: there is no %s", name, m[1])
			case m[2] != "" && path.Ext(target) == ".md" && !slices.Contains(anchors(string(read(t, target))), m[2]):
				t.Errorf("%s: %s has no heading %s", name, target, m[2])
			}
		}
	}
	if checked == 0 {
		t.Error("no document names a test or a file")
	}
}

func TestReadmeIsShort(t *testing.T) {
	text, words := string(read(t, "README.md")), 0
	for _, field := range strings.Fields(text) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			words++
		}
	}
	if n := strings.Count(text, "\n"); n > maxReadmeLines || words > maxReadmeWords {
		t.Errorf("README.md has %d lines and %d words, at most %d and %d", n, words, maxReadmeLines, maxReadmeWords)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for cell := range strings.SplitSeq(line, "|") {
			if n := utf8.RuneCountInString(strings.TrimSpace(cell)); n > maxReadmeCell {
				t.Errorf("README.md has a cell of %d characters, at most %d: %s", n, maxReadmeCell, cell)
			}
		}
	}
}

// ARCHITECTURE.md must be short. Details of one package belong in its comment, and decisions in
// docs/decisions.
func TestTheDesignIsShort(t *testing.T) {
	if n := len(read(t, "ARCHITECTURE.md")); n > maxDesign {
		t.Errorf("ARCHITECTURE.md has %d bytes, at most %d", n, maxDesign)
	}
}

// Comments that are prose must be wrapped: one blank follows their slashes. Samples of logs are
// indented further. The output of an example may have any width.
func TestCommentsAreWrapped(t *testing.T) {
	for _, name := range committed(t) {
		if path.Ext(name) != ".go" || strings.HasPrefix(path.Base(name), "zcopy_") {
			continue
		}
		isOutput := false
		for i, line := range strings.Split(string(read(t, name)), "\n") {
			text, isComment := strings.CutPrefix(strings.TrimLeft(line, "\t"), "// ")
			isOutput = isComment && (isOutput || text == "Output:")
			n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if isComment && !isOutput && n > maxComment && !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "Code generated") {
				t.Errorf("%s:%d has %d columns, at most %d", name, i+1, n, maxComment)
			}
		}
	}
}

func TestProseIsWrapped(t *testing.T) {
	for _, name := range committed(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		code := false
		for i, line := range strings.Split(string(read(t, name)), "\n") {
			text := strings.TrimSpace(line)
			if strings.HasPrefix(text, "```") {
				code = !code
			}
			if n := utf8.RuneCountInString(line); !code && n > maxProse && !strings.HasPrefix(text, "|") {
				t.Errorf("%s:%d has %d columns, at most %d", name, i+1, n, maxProse)
			}
		}
	}
}

var tableRow = regexp.MustCompile(`^\|.*\|$`)

// Each entry of docs/formats must name its test. Only an entry about a difference from another
// program may be marked as not tested.
func TestEveryDecisionNamesItsTest(t *testing.T) {
	entries := 0
	for _, name := range committed(t) {
		if path.Dir(name) != "docs/formats" {
			continue
		}
		for _, entry := range strings.Split(string(read(t, name)), "\n* **")[1:] {
			entries++
			entry, _, _ = strings.Cut(entry, "\n\n")
			_, held, _ := strings.Cut(strings.Join(strings.Fields(entry), " "), "*Test:* ")
			if !testName.MatchString(held) && !strings.Contains(held, "/testdata/") && !strings.HasSuffix(entry, "*Not tested.*") {
				t.Errorf("%s: the entry names no test: %s", name, entry)
			}
		}
	}
	if entries < 550 {
		t.Errorf("only %d entries", entries)
	}
}
