package housetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ARCHITECTURE.md draws the way of a line through package filter: its functions must be in the
// files that it names. No two files may call each other, directly or through other files.
func TestALineGoesDownThroughTheFiles(t *testing.T) {
	dir := filepath.Join(root(t), "filter")
	declared, calls := callsBetweenFiles(t, dir)
	for file := range calls {
		if way := wayBack(calls, file, file, map[string]bool{}); way != nil {
			t.Errorf("%s is called back: %s", file, strings.Join(way, " -> "))
		}
	}
	doc, err := os.ReadFile(filepath.Join(root(t), "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, drawing, ok := strings.Cut(string(doc), "```\nplain ")
	drawing, _, closed := strings.Cut(drawing, "```")
	steps := regexp.MustCompile(`(\w+\.go)((?:,? \w+)*)`).FindAllStringSubmatch(drawing, -1)
	if !ok || !closed || len(steps) == 0 {
		t.Fatal("ARCHITECTURE.md draws no way of a line through filter")
	}
	for _, step := range steps {
		if declared[step[1]] == nil {
			t.Errorf("ARCHITECTURE.md draws %s, which filter does not have", step[1])
		}
		for _, name := range strings.FieldsFunc(step[2], func(r rune) bool { return r == ' ' || r == ',' }) {
			if !declared[step[1]][name] {
				t.Errorf("ARCHITECTURE.md draws %s in %s, which has no such function", name, step[1])
			}
		}
	}
}

// callsBetweenFiles returns two sets for each file of a package: the functions that it declares,
// and the other files whose functions it uses.
func callsBetweenFiles(t *testing.T, dir string) (declared, calls map[string]map[string]bool) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	declared, calls = make(map[string]map[string]bool), make(map[string]map[string]bool)
	for _, name := range names {
		// files for other systems have the same declarations
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_other.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		functions := make(map[string]bool)
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				functions[f.Name.Name] = true
			}
		}
		declared[filepath.Base(name)], calls[filepath.Base(name)] = functions, make(map[string]bool)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	// errors about names of other packages are ignored
	config := types.Config{Importer: emptyImports{}, Error: func(error) {}}
	pkg, _ := config.Check(filepath.Base(dir), fset, files, info)
	for use, object := range info.Uses {
		if f, ok := object.(*types.Func); ok && f.Pkg() == pkg {
			from, to := filepath.Base(fset.Position(use.Pos()).Filename), filepath.Base(fset.Position(f.Pos()).Filename)
			if from != to {
				calls[from][to] = true
			}
		}
	}
	return declared, calls
}

// wayBack returns a path of calls from one file to another, or nil.
func wayBack(calls map[string]map[string]bool, from, to string, seen map[string]bool) []string {
	for _, next := range slices.Sorted(maps.Keys(calls[from])) {
		if next == to {
			return []string{from, to}
		}
		if !seen[next] {
			seen[next] = true
			if way := wayBack(calls, next, to, seen); way != nil {
				return append([]string{from}, way...)
			}
		}
	}
	return nil
}

// An emptyImports imports each package as empty: the test needs no names of other packages.
type emptyImports struct{}

func (emptyImports) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
