package source_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/internal/source"
	"github.com/symfilter/symfilter/symbolize"
)

func TestLinks(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../../testdata")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const id = "eecd138796b4297ca7ee7bb08854e1173fee4bff"
	below := roots(t, ".")
	toRoot := prefixmap.Maps{{Old: "/src", New: here}}
	for _, tt := range []struct {
		template string
		maps     prefixmap.Maps
		file     string
		line     uint32
		column   uint32
		want     string
	}{
		{"default", nil, "/src/a.c", 7, 3, "file://HOST/src/a.c"},
		{"file", toRoot, "/src/a.c", 7, 3, "file://HOSTHERE/a.c"},
		{"file", prefixmap.Maps{{Old: "/src", New: "."}}, "/src/b/../a.c", 7, 3, "file://HOSTHERE/a.c"},
		{"kitty", nil, "/src/a.c", 7, 3, "file://HOST/src/a.c#7"},
		{"vscode", nil, "/src/a.c", 7, 3, "vscode://file/src/a.c:7:3"},
		{"vscode", nil, "/src/a.c", 7, 0, "vscode://file/src/a.c:7:1"},
		{"vscode", nil, "/src/a.c", 0, 0, ""},
		{"vscode", nil, "", 7, 0, ""},
		{"vscodium", nil, `C:\src\a.c`, 7, 3, "vscodium://file/C:/src/a.c:7:3"},
		{"emacs", nil, "/src/a.c", 7, 3, "org-protocol://open-source?url=file:///src/a.c&line=7&col=3"},
		{"textmate", nil, "/src/a.c", 7, 3, "txmt://open?url=file:///src/a.c&line=7&column=3"},
		{"macvim", nil, "/src/a.c", 7, 3, "mvim://open?url=file:///src/a.c&line=7&column=3"},
		{"none", nil, "/src/a.c", 7, 3, ""},
		{"", nil, "/src/a.c", 7, 3, ""},
		{"github:acme/inventory@3f2a91c", toRoot, "/src/sub/a.c", 7, 3, "https://github.com/acme/inventory/blob/3f2a91c/sub/a.c#L7"},
		{"github:acme/inventory@3f2a91c", nil, "sub/a.c", 7, 3, "https://github.com/acme/inventory/blob/3f2a91c/sub/a.c#L7"},
		{"github:acme/inventory@3f2a91c", nil, "./sub/a.c", 7, 3, "https://github.com/acme/inventory/blob/3f2a91c/sub/a.c#L7"},
		{"github:acme/inventory@3f2a91c", nil, "/usr/include/stdio.h", 7, 3, ""}, // is not in the repository
		{"github:acme/inventory@3f2a91c", nil, "../a.c", 7, 3, ""},
		{"github:https://git.example/acme/inventory@v1/x y", nil, "a.c", 7, 3, "https://git.example/acme/inventory/blob/v1/x%20y/a.c#L7"},
		{"gitlab:acme/sub/inventory@main", nil, "a.c", 7, 3, "https://gitlab.com/acme/sub/inventory/-/blob/main/a.c#L7"},
		{"forgejo:acme/inventory@3f2a91c", nil, "a.c", 7, 3, "https://codeberg.org/acme/inventory/src/commit/3f2a91c/a.c#L7"},
		{"forgejo:acme/inventory@main", nil, "a.c", 7, 3, "https://codeberg.org/acme/inventory/src/branch/main/a.c#L7"},
		{"cgit:https://git.example/inventory.git@v1", nil, "a.c", 7, 3, "https://git.example/inventory.git/tree/a.c?id=v1#n7"},
		{"debuginfod", toRoot, "/src/sub/../a b.c", 7, 3, "https://symbols.example/buildid/" + id + "/source/src/sub/../a%20b.c"},
		{"debuginfod", nil, "a.c", 7, 3, ""},
		{"debuginfod", nil, "/src/../../../a.c", 7, 3, ""},
		{"https://code.example/{rel}?line={line}&build={build_id}", nil, "a.c", 7, 3, "https://code.example/a.c?line=7&build=" + id},
		{"https://code.example/{rel}", nil, "a\n\x00\x1b\"'<>&#?%\xff\u202eü.c", 7, 3, "https://code.example/a%0A%00%1B%22%27%3C%3E%26%23%3F%25%FF%E2%80%AE%C3%BC.c"},
		{"https://code.example/{rel}", nil, strings.Repeat("x", 2000-len("https://code.example/")), 7, 3, "https://code.example/" + strings.Repeat("x", 2000-len("https://code.example/"))},
		{"https://code.example/{rel}", nil, strings.Repeat("x", 2001-len("https://code.example/")), 7, 3, ""},
		{"https://code.example/{rel}", nil, strings.Repeat("x", 1<<20), 7, 3, ""},
	} {
		template, err := source.ParseTemplate(tt.template, "https://symbols.example/")
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		k := source.Linker{Template: template, Roots: below, PrefixMap: tt.maps}
		got, ok := k.Append([]byte("<"), symbolize.Location{ID: mustParse(id)}, &symbolize.Frame{File: tt.file, Line: tt.line, Column: tt.column})
		want := "<" + strings.NewReplacer("HOST", host, "HERE", strings.ReplaceAll((&url.URL{Path: here}).EscapedPath(), ",", "%2C")).Replace(tt.want)
		if string(got) != want || ok != (tt.want != "") {
			t.Errorf("%s, %.40q: got %.100q, %v, want %.100q", tt.template, tt.file, got, ok, want)
		}
	}
}

func TestTemplatesThatAreRefused(t *testing.T) {
	for template, want := range map[string]string{
		"javascript:alert({path})":           "the scheme javascript is refused",
		"JavaScript:alert({path})":           "is refused",
		"data:text/html,{path}":              "is refused",
		"vbscript:{path}":                    "is refused",
		"{path}":                             "is not the name of a template",
		"{path}:x":                           "is not the name of a template",
		"//host/{path}":                      "is not the name of a template",
		" https://a/{path}":                  "is not the name of a template",
		"9p://{path}":                        "is not the name of a template",
		"code":                               "is not the name of a template",
		"https://a/{file}":                   "unknown field {file: fields are {path} {rel}",
		"https://a/{path":                    "unknown field {path",
		"https://a/}{path}":                  `'}' in a template: write %7D`,
		"https://a/b c/{path}":               `' ' in a template: write %20`,
		"https://a/\x1b]8;;{path}":           `write %1B`,
		"https://a/ü{path}":                  `write %C3`,
		"https://a/{line}":                   "needs {path} or {rel}",
		"github:acme/inventory":              "is not OWNER/REPO@REV",
		"github:acme/inventory@":             "is not OWNER/REPO@REV",
		"github:inventory@v1":                "is not OWNER/REPO@REV",
		"cgit:acme/inventory@v1":             "is not URL@REV",
		"github:https://a/b c/inventory@v1":  "write %20",
		"github:javascript:alert/1@v1{path}": "",
	} {
		got, err := source.ParseTemplate(template, "")
		switch {
		case want == "":
			link, _ := got.Append(nil, &source.Fields{Rel: "a.c", Line: 1})
			if err != nil || !strings.HasPrefix(string(link), "https://github.com/") {
				t.Errorf("%s: got %s, %v", template, link, err)
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: got %v, %v, want %q", template, got, err, want)
		}
	}
	if _, err := source.ParseTemplate("debuginfod", ""); err == nil {
		t.Error("debuginfod without a server: no error")
	}
}
