package housetest

import (
	"cmp"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The errors declared in reasonFiles are reasons for frames without a name. unprinted lists the
// exceptions.
var (
	reasonFiles = []string{"internal/dialect", "internal/judge", "internal/report/object.go", "filter/tracefiles.go", "filter/resolved.go", "filter/trace.go", "valgrind/missing.go", "rtrace/options.go", "symbolize/module.go"}
	unprinted   = []string{
		"the mapping is not a file", // an error of a report that leaves nothing unresolved
	}
)

// docs/unresolved.md must quote each reason, but not the advice at its end.
func TestThePageOfReasonsHasThemAll(t *testing.T) {
	page := string(read(t, "docs/unresolved.md"))
	found := 0
	parseGo(t, func(name string, f *ast.File) {
		if strings.HasSuffix(name, "_test.go") || !slices.Contains(reasonFiles, name) && !slices.Contains(reasonFiles, path.Dir(name)) {
			return
		}
		for _, d := range f.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 1 {
					return true
				}
				if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "New" {
					return true
				}
				literal, ok := call.Args[0].(*ast.BasicLit)
				if !ok {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				found++
				words := text[:min(len(text), strings.IndexAny(text+";", ":;("))]
				if !strings.Contains(page, strings.TrimSpace(words)) && !slices.Contains(unprinted, text) {
					t.Errorf("docs/unresolved.md lacks %q, of %s", words, name)
				}
				return true
			})
		}
	})
	if found < 40 {
		t.Errorf("only %d reasons", found)
	}
}

// format matches a verb of a format, and the characters that end the fixed part of a message.
var format = regexp.MustCompile(`%\S|[:;(?]`)

// docs/unresolved.md must quote the doctor's messages about unusable files and modules, and the
// reasons of --explain.
func TestThePageOfReasonsHasTheWordsOfTheDoctor(t *testing.T) {
	page := string(read(t, "docs/unresolved.md"))
	const least = 10 // bytes of the shortest searched part
	found := 0
	check := func(name string, arg ast.Expr) {
		literal, ok := arg.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		longest := ""
		for _, part := range format.Split(text, -1) {
			if part = strings.Trim(part, " ,)"); len(part) > len(longest) {
				longest = part
			}
		}
		if len(longest) < least {
			return
		}
		found++
		if !strings.Contains(page, longest) {
			t.Errorf("docs/unresolved.md lacks %q of %q, of %s", longest, text, name)
		}
	}
	parseGo(t, func(name string, f *ast.File) {
		if path.Dir(name) != "internal/doctor" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if ok && (sel.Sel.Name == "wrong" || sel.Sel.Name == "none") && len(n.Args) > 0 {
					check(name, n.Args[0])
				}
			case *ast.FuncDecl:
				if n.Name.Name != "because" {
					return true
				}
				ast.Inspect(n, func(n ast.Node) bool {
					if r, ok := n.(*ast.ReturnStmt); ok {
						check(name, r.Results[0])
					}
					return true
				})
			}
			return true
		})
	})
	if found < 15 {
		t.Errorf("only %d messages", found)
	}
}

func TestPagesOfDocsAreListedAndShort(t *testing.T) {
	const most = 100 // lines
	lists := func(index, page string) bool {
		text := string(read(t, index))
		return strings.Contains(text, "]("+page+")") || strings.Contains(text, "]("+page+"#")
	}
	pages := 0
	for _, name := range committed(t) {
		page, ok := strings.CutPrefix(name, "docs/")
		if !ok || path.Ext(name) != ".md" || page == "README.md" {
			continue
		}
		pages++
		index := "docs/README.md"
		switch path.Dir(page) {
		case "formats":
			index, page = "SPEC.md", name
		case "decisions":
			if path.Base(page) != "README.md" {
				index, page = "docs/decisions/README.md", path.Base(page)
			}
		}
		if !lists(index, page) {
			t.Errorf("%s does not list %s", index, page)
		}
		if n := strings.Count(string(read(t, name)), "\n"); path.Dir(page) == "start" && n > most {
			t.Errorf("%s has %d lines, at most %d", name, n, most)
		}
	}
	if pages < 15 {
		t.Errorf("only %d pages", pages)
	}
}

var quickTest = regexp.MustCompile(`(?m)^go test \./(\S+) -run '(\w+)(?:/(\w+))?\$'`)

// Each command for one test in CONTRIBUTING.md must name an existing test of the package and, if it
// names a script, an existing script.
func TestTheCommandsForOneTestRunOne(t *testing.T) {
	all := committed(t)
	commands := quickTest.FindAllStringSubmatch(string(read(t, "CONTRIBUTING.md")), -1)
	for _, m := range commands {
		pkg, name, script := m[1], m[2], m[3]
		declares := func(file string) bool {
			return path.Dir(file) == pkg && strings.HasSuffix(file, "_test.go") && strings.Contains(string(read(t, file)), "\nfunc "+name+"(t *testing.T)")
		}
		if !slices.ContainsFunc(all, declares) {
			t.Errorf("./%s has no %s", pkg, name)
		}
		if isScript := func(file string) bool { return strings.HasPrefix(file, pkg+"/testdata/script/"+script+".") }; script != "" && !slices.ContainsFunc(all, isScript) {
			t.Errorf("./%s has no script %s", pkg, script)
		}
	}
	if len(commands) != 3 {
		t.Errorf("%d commands, want 3", len(commands))
	}
}

// followedPages matches the pages whose sh blocks are run as written. TestPagesOfDocsWorkAsWritten
// runs them, except those of collector.md, which the tests of collector/ run.
var followedPages = regexp.MustCompile(`^docs/(start/\w+|add-a-dialect|addresses|json|unresolved)\.md$`)

// Above each block of commands, a comment must name the test that runs it, or the reason why no
// test does.
func TestEachBlockOfCommandsIsRunOrSaysWhyNot(t *testing.T) {
	sources := make(map[string]string)
	parseGo(t, func(name string, f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				sources[fn.Name.Name] = name
			}
		}
	})
	block := regexp.MustCompile("(?m)^(.*)\n[ \t]*```sh( manual)?$")
	comment := regexp.MustCompile(`^<!-- (?:run by (\w+)[^a-z].*|not run: .+ .+ )-->$`)
	checked := 0
	for _, page := range committed(t) {
		if page != "README.md" && (path.Ext(page) != ".md" || path.Dir(page) != "docs" && path.Dir(page) != "docs/start") {
			continue
		}
		for _, m := range block.FindAllStringSubmatch(string(read(t, page)), -1) {
			if m[2] == "" && followedPages.MatchString(page) {
				continue
			}
			checked++
			found := comment.FindStringSubmatch(m[1])
			if found == nil || m[2] == "" && page != "README.md" {
				t.Errorf("%s: a block sh%s after %q: write sh manual, and above it <!-- run by TEST --> or <!-- not run: REASON -->", page, m[2], m[1])
			} else if test := found[1]; test != "" && !strings.Contains(string(read(t, cmp.Or(sources[test], "go.mod"))), strings.TrimPrefix(page, "docs/")) {
				t.Errorf("%s: %s does not read it", page, test)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d blocks", checked)
	}
}
