package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The field of each flag must be read somewhere: otherwise the flag would have no effect. The
// scripts find this only for the flags that they use.
func TestFlagsAreRead(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	rows := 0
	for range commandLine().Flags() {
		rows++
	}
	found, unread := flagFields(fset, files)
	if found != rows {
		t.Errorf("%d rows with a field were found, want those of all %d flags", found, rows)
	}
	for _, name := range unread {
		t.Errorf("--%s: nothing reads the field that it sets", name)
	}
}

// flagFields must find a field that is never read, and accept each kind of read.
func TestUnreadFlagsAreFound(t *testing.T) {
	const table = `package main
type config struct { inner; deep struct{ field int } }
type inner struct { a, b bool }
var options = []Flag{{Name: "flag", Field: func(c *config) any { return &c.%s }}}
func newConfig() *config { return &config{inner: inner{a: true}} }
`
	for _, tt := range []struct {
		field, use string
		unread     bool
	}{
		{"a", "", true},
		{"a", "func f(c *config) bool { return c.a }", false},
		{"a", "func f(c *config) bool { return c.b }", true},
		{"a", "func f(c *config) { c.a = true }", true},
		{"a", "func f(c *config) { c.b = c.a }", false},
		{"a", `func f(c *config) { refuse("no", usedFlag{"--flag", c.a}) }`, true},
		{"a", "type other struct { a bool }; func f(o *other) bool { return o.a }", true},
		{"deep.field", "func f(c *config) any { return c.deep }", true},
		{"deep.field", "func f(c *config) any { d := &c.deep; return d.field }", false},
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", strings.Replace(table, "%s", tt.field, 1)+tt.use, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if rows, unread := flagFields(fset, []*ast.File{f}); rows != 1 || len(unread) == 1 != tt.unread {
			t.Errorf("%s with %q: %d rows, unread %q", tt.field, tt.use, rows, unread)
		}
	}
}

// flagFields returns the number of rows with a field, and the names of the flags whose field is
// never read. Setting a field is not reading it, and a [usedFlag] only checks whether the flag was
// given. If a flag sets a field of another package's struct, the field of this package that holds
// the struct must be read.
func flagFields(fset *token.FileSet, files []*ast.File) (rows int, unread []string) {
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	// ignore errors: names of other packages and files for other systems are missing
	check := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := check.Check("main", fset, files, info)

	fieldOf := func(id *ast.Ident) *types.Var {
		if v, ok := info.Uses[id].(*types.Var); ok && v.IsField() && v.Pkg() == pkg {
			return v
		}
		return nil
	}
	flags := make(map[*types.Var][]string)
	passed := make(map[*ast.Ident]bool) // uses that do not read the field
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				name, body := rowOf(n)
				if body != nil {
					var last *types.Var
					eachIdent(body, func(id *ast.Ident) {
						passed[id] = true
						if v := fieldOf(id); v != nil {
							last = v
						}
					})
					if last != nil {
						rows++
						flags[last] = append(flags[last], name)
					}
				}
				if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "usedFlag" {
					eachIdent(n, func(id *ast.Ident) { passed[id] = true })
				}
			case *ast.KeyValueExpr:
				if id, ok := n.Key.(*ast.Ident); ok {
					passed[id] = true
				}
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					if sel, ok := to.(*ast.SelectorExpr); ok && n.Tok == token.ASSIGN {
						passed[sel.Sel] = true
					}
				}
			}
			return true
		})
	}
	for id := range info.Uses {
		if v := fieldOf(id); v != nil && !passed[id] {
			delete(flags, v)
		}
	}
	return rows, slices.Sorted(func(yield func(string) bool) {
		for names := range maps.Values(flags) {
			for _, name := range names {
				if !yield(name) {
					return
				}
			}
		}
	})
}

// rowOf returns the name and the body of Field of a table row, or nil for any other literal.
func rowOf(lit *ast.CompositeLit) (name string, body *ast.BlockStmt) {
	for _, e := range lit.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, _ := pair.Key.(*ast.Ident)
		switch value := pair.Value.(type) {
		case *ast.BasicLit:
			if key != nil && key.Name == "Name" {
				name, _ = strconv.Unquote(value.Value)
			}
		case *ast.FuncLit:
			if key != nil && key.Name == "Field" {
				body = value.Body
			}
		}
	}
	return name, body
}

func eachIdent(n ast.Node, visit func(*ast.Ident)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			visit(id)
		}
		return true
	})
}

// A noImports imports each package as empty, since the fields of config are in this package.
type noImports struct{}

func (noImports) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
