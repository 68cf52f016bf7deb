package housetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// sequential returns the packages that `make test` tests without the race detector.
func sequential(t *testing.T) []string {
	t.Helper()
	text := strings.ReplaceAll(string(read(t, "Makefile")), "\\\n", " ")
	m := regexp.MustCompile(`(?m)^SEQUENTIAL = (.*)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("Makefile lists no SEQUENTIAL packages")
	}
	return strings.Fields(m[1])
}

func TestSequentialPackagesStartNoGoroutine(t *testing.T) {
	found := map[string]int{}
	for _, name := range committed(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, dir := range sequential(t) {
			if path.Dir(name) == dir {
				found[dir]++
				for _, fault := range concurrency(t, name, read(t, name)) {
					t.Errorf("%s; take %s out of SEQUENTIAL in the Makefile", fault, dir)
				}
			}
		}
	}
	for _, dir := range sequential(t) {
		if found[dir] == 0 {
			t.Errorf("SEQUENTIAL in the Makefile: %s has no Go file", dir)
		}
	}
}

// concurrency returns the places in a file that start a goroutine or import sync or sync/atomic.
func concurrency(t *testing.T, name string, src []byte) (faults []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if i.Path.Value == `"sync"` || i.Path.Value == `"sync/atomic"` {
			faults = append(faults, fset.Position(i.Pos()).String()+": imports "+i.Path.Value)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			faults = append(faults, fset.Position(g.Pos()).String()+": starts a goroutine")
		}
		return true
	})
	return faults
}

func TestConcurrency(t *testing.T) {
	const src = "package a\nimport (\"sync\"; \"io\")\nfunc f() { for { go f() } }\n"
	want := "a.go:2:9: imports \"sync\"\na.go:3:18: starts a goroutine"
	if got := strings.Join(concurrency(t, "a.go", []byte(src)), "\n"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
