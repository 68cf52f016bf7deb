package demangle

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make the copy anew")

const libraryPath = "github.com/ianlancetaylor/demangle"

// An edit replaces a text that must be in the library's file exactly as often as it says.
type edit struct {
	from, to string
	times    int
}

// edits weave the budget in. They also replace maps, which the program would fill whenever it
// starts, by arrays, which the linker fills.
var edits = map[string][]edit{
	"demangle.go": {
		// Parsing: each token.
		{"\tstr       string        // remainder of string to demangle\n", "\tbudget    *budget\n\tstr       string        // remainder of string to demangle\n", 1},
		{"st := &state{str: name,", "st := &state{budget: new(budget), str: name,", 1},
		{"func (st *state) advance(add int) {\n", "func (st *state) advance(add int) {\n\tst.budget.take(parseStep)\n", 1},
		{"\t\t\tq = append([]AST{qual}, q...)\n", "\t\t\tst.budget.take(printStep * len(q))\n\t\t\tq = append([]AST{qual}, q...)\n", 2},
		{"func (st *state) copy() *state {\n", "func (st *state) copy() *state {\n\tst.budget.take(retryStep)\n", 1},

		// Maps.
		{"var builtinTypes = map[byte]string{\n", "var builtinTypes = [256]string{\n", 1},
		{"if btype, ok := builtinTypes[st.str[0]]; ok {", "if btype := builtinTypes[st.str[0]]; btype != \"\" {", 1},
		{"var qualifiers = map[byte]string{\n", "var qualifiers = [256]string{\n", 1},
		{"if qv, ok := qualifiers[st.str[0]]; ok {", "if qv := qualifiers[st.str[0]]; qv != \"\" {", 1},
		{"var subAST = map[byte]AST{\n", "var subAST = [256]AST{\n", 1},
		{"var verboseAST = map[byte]AST{\n", "var verboseAST = [256]AST{\n", 1},
		{"\t\ta, ok := m[c]\n\t\tif !ok {\n", "\t\ta := m[c]\n\t\tif a == nil {\n", 1},
		{"\t\tm := subAST\n", "\t\tm := &subAST\n", 1},
		{"\t\t\tm = verboseAST\n", "\t\t\tm = &verboseAST\n", 2},

		// Walks over the tree: each node.
		{"\tskip := func(a AST) bool {\n\t\tif seen[a] {\n", "\tskip := func(a AST) bool {\n\t\tst.budget.take(visitStep)\n\t\tif seen[a] {\n", 1},
		{"\t\tskip := func(a AST) bool {\n\t\t\tswitch a := a.(type) {\n", "\t\tskip := func(a AST) bool {\n\t\t\tst.budget.take(visitStep)\n\t\t\tswitch a := a.(type) {\n", 1},
		{"\t\t\t\tskip := func(sub AST) bool {\n", "\t\t\t\tst.budget.take(visitStep)\n\t\t\t\tskip := func(sub AST) bool {\n\t\t\t\t\tst.budget.take(visitStep)\n", 1},
		{"\ta.Traverse(func(a AST) bool {\n\t\tswitch a := a.(type) {\n", "\ta.Traverse(func(a AST) bool {\n\t\tst.budget.take(visitStep)\n\t\tswitch a := a.(type) {\n", 1},
		{"\t\t\t\ta.Traverse(func(a AST) bool {\n", "\t\t\t\ta.Traverse(func(a AST) bool {\n\t\t\t\t\tst.budget.take(visitStep)\n", 1},
		{"\ta.Traverse(func(a AST) bool {\n\t\tif ret != nil {\n", "\ta.Traverse(func(a AST) bool {\n\t\tst.budget.take(visitStep)\n\t\tif ret != nil {\n", 1},
		{"func simplify(a AST) AST {\n", "func (st *state) simplify(a AST) AST {\n", 1},
		{"func simplifyOne(a AST) AST {\n", "func (st *state) simplifyOne(a AST) AST {\n", 1},
		{"a.Copy(simplifyOne, skip)", "a.Copy(st.simplifyOne, skip)", 1},
		{" = simplify(", " = st.simplify(", 3},
		{"func mergeQualifiers(q1AST, q2AST AST) AST {\n", "func (st *state) mergeQualifiers(q1AST, q2AST AST) AST {\n", 1},
		{" mergeQualifiers(a", " st.mergeQualifiers(a", 4},
		{" = mergeQualifiers(", " = st.mergeQualifiers(", 2},
		// A correction: the levels of an unresolved name are simple-ids, which cannot be referred to
		// by a substitution, with template arguments or without.
		{"\t\t\t\tif len(st.str) > 0 && st.str[0] == 'I' {\n\t\t\t\t\tst.subs.add(n)\n\t\t\t\t\tn = st.template(n)\n\t\t\t\t}\n\t\t\t\tif s == nil {\n", "\t\t\t\tif len(st.str) > 0 && st.str[0] == 'I' {\n\t\t\t\t\tn = st.template(n)\n\t\t\t\t}\n\t\t\t\tif s == nil {\n", 1},

		{"\tm := make(map[string]bool)\n\tfor _, qualAST := range q1.Qualifiers {\n", "\tm := make(map[string]bool)\n\tst.budget.take(visitStep * (len(q1.Qualifiers) + len(q2AST.(*Qualifiers).Qualifiers)))\n\tfor _, qualAST := range q1.Qualifiers {\n", 1},
	},
	"ast.go": {
		{"\n\t// Implement the fmt.GoStringer interface.\n\tGoString() string\n\tgoString(indent int, field string) string\n", "", 1},

		// Printing: each node, and the comparison with those around it.
		{"\tmax             int // maximum output length\n", "\tmax             int // maximum output length\n\tbudget          budget\n", 1},
		{"\tc := 0\n\tfor _, v := range ps.printing {\n", "\tps.budget.take(printStep + len(ps.printing))\n\tc := 0\n\tfor _, v := range ps.printing {\n", 1},
		{"\tif ps.max > 0 && ps.buf.Len() > ps.max {\n\t\treturn\n\t}\n", "\tps.budget.take(1)\n\tif ps.max > 0 && ps.buf.Len() > ps.max {\n\t\treturn\n\t}\n", 1},
		{"\t\tif skip != nil && skip(a) {\n", "\t\tps.budget.take(1)\n\t\tif skip != nil && skip(a) {\n", 1},
		{"\tfor i := len(ps.inner) - 1; i >= 0; i-- {\n", "\tps.budget.take(len(ps.inner))\n\tfor i := len(ps.inner) - 1; i >= 0; i-- {\n", 1},
		{"\t\t\t\tif p.prec() >= precComma {\n\t\t\t\t\tneedsParen = true\n", "\t\t\t\tif _, pack := a.(*ExprList); !pack && p.prec() >= precComma {\n\t\t\t\t\tneedsParen = true\n", 1},
		{"func (ps *printState) isEmpty(a AST) bool {\n", "func (ps *printState) isEmpty(a AST) bool {\n\tps.budget.take(1)\n", 1},
		// A correction: an empty pack in a list of arguments has no comma.
		{"func (ap *ArgumentPack) print(ps *printState) {\n\tfor i, a := range ap.Args {\n\t\tif i > 0 {\n\t\t\tps.writeString(\", \")\n\t\t}\n\t\tps.print(a)\n\t}\n}\n", "func (ap *ArgumentPack) print(ps *printState) {\n\tfirst := true\n\tfor _, a := range ap.Args {\n\t\tif ps.isEmpty(a) {\n\t\t\tcontinue\n\t\t}\n\t\tif !first {\n\t\t\tps.writeString(\", \")\n\t\t}\n\t\tps.print(a)\n\t\tfirst = false\n\t}\n}\n", 1},
		{"func (ps *printState) printOneInner(save *[]AST) {\n", "func (ps *printState) printOneInner(save *[]AST) {\n\tps.budget.take(printStep)\n", 1},
	},
	"rust.go": {
		{"var rustBasicTypes = map[byte]string{\n", "var rustBasicTypes = [256]string{\n", 1},
		{"str, ok := rustBasicTypes[rst.str[0]]\n\tif !ok {\n", "str := rustBasicTypes[rst.str[0]]\n\tif str == \"\" {\n", 1},

		// Parsing and printing are one: each token, and each reference to an earlier one.
		{"\torig          string          // the original string being demangled\n", "\tbudget        budget\n\torig          string          // the original string being demangled\n", 1},
		{"func (rst *rustState) advance(add int) {\n", "func (rst *rustState) advance(add int) {\n\trst.budget.take(rustStep)\n", 1},
		{"\tholdStr := rst.str\n\tholdOff := rst.off\n\trst.str = rst.orig[idx:backoff]\n", "\trst.budget.take(printStep)\n\tholdStr := rst.str\n\tholdOff := rst.off\n\trst.str = rst.orig[idx:backoff]\n", 1},
	},
}

// TestCopyIsTheLibraryWithABudget: the files are those of the version that go.mod names, but for
// the edits.
func TestCopyIsTheLibraryWithABudget(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	p, err := build.Import(libraryPath, dir, build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string][]byte{}
	for name, edits := range edits {
		source, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		wanted["zcopy_"+name] = woven(t, name, source, edits)
	}
	if wanted["LICENSE"], err = os.ReadFile(filepath.Join(p.Dir, "LICENSE")); err != nil {
		t.Fatal(err)
	}
	for name, want := range wanted {
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not the library's with the edits (%v): go test ./internal/demangle -run TestCopy -update", name, err)
		}
	}
}

var packageDoc = regexp.MustCompile(`(?m)^(//.*\n)*package demangle$`)

// woven returns a file of the library with the edits.
func woven(t *testing.T, name string, source []byte, edits []edit) []byte {
	s := withoutPrinters(t, name, source)
	for _, e := range edits {
		if n := strings.Count(s, e.from); n != e.times {
			t.Fatalf("%s: %q is there %d times, want %d", name, e.from, n, e.times)
		}
		s = strings.ReplaceAll(s, e.from, e.to)
	}
	s = packageDoc.ReplaceAllString(s, "package demangle")
	out, err := format.Source(fmt.Appendf(nil, "// Code generated by copy_test.go from %s/%s; DO NOT EDIT.\n\n//lint:file-ignore SA4006 the library has such a variable\n\n%s", libraryPath, name, s))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// withoutPrinters returns the source without the functions that print syntax trees.
func withoutPrinters(t *testing.T, name string, source []byte) string {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	at := 0
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "GoString" && fn.Name.Name != "goString" {
			continue
		}
		from := fn.Pos()
		if fn.Doc != nil {
			from = fn.Doc.Pos()
		}
		b.Write(source[at:files.Position(from).Offset])
		at = files.Position(fn.End()).Offset
	}
	b.Write(source[at:])
	return b.String()
}
