package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A testPackage is a package with the tests that its files declare.
type testPackage struct {
	path, dir string
	fuzz      []string // names of fuzz targets
	work      []string // names of tests that call fuzztest.WithoutRace
}

// findTests reads the test files of packages for this platform. It builds nothing.
func findTests(packages []string) ([]testPackage, error) {
	const format = "{{.ImportPath}}\t{{.Dir}}\t{{range .TestGoFiles}}{{.}}\t{{end}}{{range .XTestGoFiles}}{{.}}\t{{end}}"
	out, err := exec.Command("go", append([]string{"list", "-f", format}, packages...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []testPackage
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\t\n"), "\t")
		p := testPackage{path: fields[0], dir: fields[1]}
		for _, name := range fields[2:] {
			if err := p.addFile(filepath.Join(p.dir, name), nil); err != nil {
				return nil, err
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// addFile adds the tests of a file. src is its text, or nil to read the file.
func (p *testPackage) addFile(name string, src any) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Body == nil {
			continue
		}
		if strings.HasPrefix(f.Name.Name, "Fuzz") {
			p.fuzz = append(p.fuzz, f.Name.Name)
		}
		call := withoutRace(f.Body)
		switch {
		case call == token.NoPos:
		case strings.HasPrefix(f.Name.Name, "Test"):
			p.work = append(p.work, f.Name.Name)
		default:
			return fmt.Errorf("%s: WithoutRace is called by %s; only the test itself may call it, or it is not found", fset.Position(call), f.Name.Name)
		}
	}
	return nil
}

// withoutRace returns the position of a call of fuzztest.WithoutRace in body, or NoPos.
func withoutRace(body ast.Node) token.Pos {
	at := token.NoPos
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "WithoutRace" {
			at = s.Pos()
		}
		return at == token.NoPos
	})
	return at
}

// workArgs returns the arguments with which go test runs only the tests that call
// fuzztest.WithoutRace.
func workArgs(flags []string, packages []testPackage) []string {
	var names, paths []string
	for _, p := range packages {
		if len(p.work) > 0 {
			names = append(names, p.work...)
			paths = append(paths, p.path)
		}
	}
	slices.Sort(names)
	return slices.Concat(flags, []string{"-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$"}, paths)
}
