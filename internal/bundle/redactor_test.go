package bundle

import (
	"io"
	"strings"
	"testing"
)

// TestRedactedLines checks that lines keep the user's places, and only the base names of other
// paths.
func TestRedactedLines(t *testing.T) {
	var b strings.Builder
	r := NewRedactor(&b, "/home/alice/", []string{"/home/alice/my symbols/", "/srv/debug", "out", "/home/bob/out", ""})
	r.Hide("/home/alice/acme merger/app", "key: Payroll::run", strings.Repeat("long name ", 10), "plain.so", "/srv/debug/a", "")
	for line, want := range map[string]string{
		"ok /home/alice/my symbols/ab/cd.debug holds":                "ok ~/my symbols/ab/cd.debug holds",
		"/home/alice/acme merger/app: no debug file":                 "…/app: no debug file",
		"--image app=/home/alice/x/app if":                           "--image app=…/app if",
		"next: key: Payroll::run: no":                                "next: xxx: xxxxxxx::xxx: no",
		strings.Repeat("long name ", 10)[:maxName] + "… of plain.so": strings.Repeat("xxxx xxxx ", 10)[:maxName] + "… of plain.so",
		"/srv/debug/a /srv/debugger/b /srv/debug.":                   "/srv/debug/a …/b /srv/debug.",
		"out/a in without/b, at (/a/b.so)":                           "out/a in …/b, at (…/b.so)",
		"HOME /home/alice. and /home/alicent/x n/a":                  "HOME ~. and …/x n/a",
		"GET https://u:p@host:80/tok?q#f: 404 http://h. ftp://%zz":   "GET https://host:80/…: 404 http://h. (a URL)",
		"BAD /home/bob/out: not a folder":                            "BAD /home/x/out: not a folder",
		"log /proc/self/maps with it":                                "log /proc/self/maps with it",
		"/home/alice/ключ/ключ":                                      "…/xxxx",
	} {
		b.Reset()
		for _, part := range strings.SplitAfter(line+"\n", " ") { // lines come in parts
			if _, err := io.WriteString(r, part); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.TrimSuffix(b.String(), "\n"); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", line, got, want)
		}
	}
}
