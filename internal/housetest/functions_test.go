package housetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// A function should fit on one screen, and each of its branches should be tested. A branch is an
// if, a loop, a case, or an operand of && or ||; a body without branches counts as 1.
const maxLines, maxBranches = 80, 25

// A function above these limits has a row in testdata/functions.txt with its lines and branches,
// which may only decrease. The row also has the reason: "table" for a table written as a switch or
// literal, otherwise the missing split.
func TestFunctionsAreShort(t *testing.T) {
	type size struct{ lines, branches int }
	allowed := make(map[string]size)
	for i, row := range strings.Split(strings.TrimSpace(string(read(t, "internal/housetest/testdata/functions.txt"))), "\n") {
		if strings.HasPrefix(row, "#") {
			continue
		}
		f := strings.SplitN(row, " ", 4)
		if len(f) != 4 {
			t.Fatalf("functions.txt:%d: want lines, branches, a function and a reason: %s", i+1, row)
		}
		lines, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatal(err)
		}
		branches, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(err)
		}
		allowed[f[2]] = size{lines, branches}
	}
	functions := 0
	for _, name := range committed(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, read(t, name), parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(file) {
			continue
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			functions++
			got := size{files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1, branches(f.Body)}
			of := path.Dir(name) + "." + functionName(f)
			want, listed := allowed[of]
			delete(allowed, of)
			switch short := got.lines <= maxLines && got.branches <= maxBranches; {
			case short && listed:
				t.Errorf("%s is short now: remove its row of functions.txt", of)
			case short:
			case !listed:
				t.Errorf("%s: %s has %d lines and %d branches, want at most %d and %d", name, of, got.lines, got.branches, maxLines, maxBranches)
			case got.lines > want.lines || got.branches > want.branches:
				t.Errorf("%s has grown from %d lines and %d branches to %d and %d", of, want.lines, want.branches, got.lines, got.branches)
			}
		}
	}
	for of := range allowed {
		t.Errorf("functions.txt has %s, which is not there", of)
	}
	if functions < 5000 {
		t.Errorf("only %d functions", functions)
	}
}

// functionName returns the name of f, after the type of its receiver.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if of, ok := of.(*ast.Ident); ok {
		return of.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

func branches(body *ast.BlockStmt) int {
	n := 1
	ast.Inspect(body, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
