package housetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// publicPackages are the packages that other modules may import, as docs/compatibility.md lists
// them.
var publicPackages = []string{".", "buildid", "callgrind", "debuginfod", "filter", "markup", "rtrace", "sgr", "symbolize", "valgrind"}

// Exported declarations must not name an internal type. Another module could not make a value of
// such a type, and does not see its documentation.
func TestExportedDeclarationsNameNoInternalType(t *testing.T) {
	for _, dir := range publicPackages {
		names, err := filepath.Glob(filepath.Join(root(t), dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no files of Go: %v", dir, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, leak := range internalTypesOf(file) {
				t.Errorf("%s: %s", filepath.Join(dir, filepath.Base(name)), leak)
			}
		}
	}
}

func TestInternalTypesAreFoundInDeclarations(t *testing.T) {
	const head = "package p\nimport (\n\"" + module + "/internal/report\"\nother \"" + module + "/internal/lines\"\n\"" + module + "/markup\"\n)\n"
	for source, want := range map[string]string{
		"func F(o report.Options) {}":                             "F names report.Options",
		"func (t *T) M() (_ []*other.Cutter, _ error) { return }": "M names other.Cutter",
		"type T struct{ A int; B map[string]report.Share }":       "T.B names report.Share",
		"type T struct{ *report.Options }":                        "T names report.Options",
		"type T = report.Options":                                 "T names report.Options",
		"type T interface{ M(report.Options) }":                   "T names report.Options",
		"var V report.Options":                                    "V names report.Options",
		"type T struct{ a report.Options }":                       "",
		"func (t *t) M(o report.Options) {}":                      "",
		"func f(o report.Options) {}":                             "",
		"func F(e markup.Element) { report.New() }":               "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", head+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(internalTypesOf(file), "; "); got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}

// internalTypesOf returns the internal types that a file's exported declarations name. Each result
// begins with the name that is declared.
func internalTypesOf(file *ast.File) (found []string) {
	internal := make(map[string]bool) // local names of the imported internal packages
	for _, spec := range file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		if !strings.HasPrefix(p, module+"/internal/") {
			continue
		}
		name := p[strings.LastIndexByte(p, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		internal[name] = true
	}
	look := func(declared string, in ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if p, ok := s.X.(*ast.Ident); ok && internal[p.Name] {
					found = append(found, declared+" names "+p.Name+"."+s.Sel.Name)
				}
			}
			return true
		})
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || isExportedType(d.Recv.List[0].Type)) {
				look(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						lookAtType(spec, look)
					}
				case *ast.ValueSpec:
					if spec.Type != nil && spec.Names[0].IsExported() {
						look(spec.Names[0].Name, spec.Type)
					}
				}
			}
		}
	}
	return found
}

// lookAtType passes a declared type to the function look. For a struct, it passes the types of the
// exported and embedded fields instead.
func lookAtType(spec *ast.TypeSpec, look func(declared string, in ast.Node)) {
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		look(spec.Name.Name, spec.Type)
		return
	}
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 && isExportedType(f.Type) {
			look(spec.Name.Name, f.Type)
		}
		for _, name := range f.Names {
			if name.IsExported() {
				look(spec.Name.Name+"."+name.Name, f.Type)
			}
		}
	}
}

// isExportedType reports whether the type of a receiver or of an embedded field is exported.
func isExportedType(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.StarExpr:
		return isExportedType(of.X)
	case *ast.IndexExpr:
		return isExportedType(of.X)
	case *ast.SelectorExpr:
		return of.Sel.IsExported()
	case *ast.Ident:
		return of.IsExported()
	}
	return false
}
