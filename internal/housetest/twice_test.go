package housetest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxEqualLines bounds a run of equal lines of code in two packages. A longer run belongs in a
// package that both import.
const maxEqualLines = 11

func TestNoCodeStandsInTwoPackages(t *testing.T) {
	files := map[string]string{}
	for _, name := range committed(t) {
		copied := strings.HasPrefix(name, "internal/demangle/zcopy_")
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains("/"+name, "/testdata/") || copied {
			continue
		}
		if code := string(read(t, name)); !strings.HasPrefix(code, "// Code generated ") {
			files[name] = code
		}
	}
	for _, r := range equalRuns(files, maxEqualLines+1) {
		t.Errorf("%s:%d and %s:%d have %d lines in common", r.a.file, r.a.line, r.b.file, r.b.line, r.lines)
	}
}

// place is a line of code.
type place struct {
	file string
	line int // 1-based
	code string
}

// equalRun is a run of equal lines that begins at both a and b.
type equalRun struct {
	a, b  place
	lines int
}

// noCode matches lines that are not compared: empty lines, comments, imports, and lines with only
// punctuation.
var noCode = regexp.MustCompile(`^(//.*|import \(|(import )?([\w.]+ )?"[^"]*"|[][(){},;]*)$`)

// equalRuns returns the runs of at least n equal lines in files of two packages.
func equalRuns(files map[string]string, n int) (all []equalRun) {
	code := map[string][]place{}
	windows := map[string][]int{} // indexes in starts, by the text of n lines
	var starts []place            // first line of each window
	var index []int               // by window: index of its first line in code[file]
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for i, line := range strings.Split(files[name], "\n") {
			if line = strings.TrimSpace(line); !noCode.MatchString(line) {
				code[name] = append(code[name], place{name, i + 1, line})
			}
		}
		lines := code[name]
		for i := 0; i+n <= len(lines); i++ {
			var text strings.Builder
			for _, l := range lines[i : i+n] {
				text.WriteString(l.code + "\n")
			}
			for _, w := range windows[text.String()] {
				from, at := starts[w], index[w]
				other := code[from.file]
				if path.Dir(from.file) == path.Dir(name) || i > 0 && at > 0 && lines[i-1].code == other[at-1].code {
					continue // in one package, or part of a known run
				}
				length := n
				for i+length < len(lines) && at+length < len(other) && lines[i+length].code == other[at+length].code {
					length++
				}
				all = append(all, equalRun{from, lines[i], length})
			}
			windows[text.String()] = append(windows[text.String()], len(starts))
			starts, index = append(starts, lines[i]), append(index, i)
		}
	}
	return all
}

func TestEqualRuns(t *testing.T) {
	const first = "package a\n\nimport \"x\"\n\nfunc f() {\n\tone()\n\ttwo()\n\t// why\n\tthree()\n}\n"
	for _, tt := range []struct {
		name, file, code string
		want             string
	}{
		{"the same", "b/b.go", first, "a/a.go:1 b/b.go:1 5"},
		{"other comments, imports and blank lines", "b/b.go", "package b\nimport \"y\"\nfunc f() {\none()\n\n\ntwo()\nthree()}\n", "a/a.go:5 b/b.go:3 3"},
		{"within other code", "b/b.go", "x()\ntwo()\nthree()\n}\nfunc g() {\none()\ntwo()\nthree()\n", "a/a.go:6 b/b.go:6 3"},
		{"too short", "b/b.go", "one()\ntwo()\n", ""},
		{"interrupted", "b/b.go", "one()\ntwo()\nmore()\nthree()\n", ""},
		{"in the same package", "a/b.go", first, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range equalRuns(map[string]string{"a/a.go": first, tt.file: tt.code}, 3) {
				got = append(got, fmt.Sprintf("%s:%d %s:%d %d", r.a.file, r.a.line, r.b.file, r.b.line, r.lines))
			}
			if strings.Join(got, "; ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
