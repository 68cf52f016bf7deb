package main

import (
	"strings"
	"testing"
)

// The pairs of arguments for the members of a URI must be accepted in any order, since containerd's
// order is random.
func TestArgumentsOfURIs(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"container-log||--path|/l", "container-log|--path=/l"},
		{"--path|/l|--quiet||container-log|", "container-log|--path=/l|--quiet"},
		{"--omit-module-lines|true|container-log|/l", "container-log|--omit-module-lines=true|--path=/l"},
		{"-s|out|container-log|", "container-log|-s|out"},
		{"container-log|", "container-log"},
		{"container-log|--path", ""},
		{"container-log|--path|/l", ""},
		{"container-log|--path|/l|--quiet", ""},
		{"container-log", ""},
		{"--path|/l", ""},
		{"a|b|container-log|", ""},
		{"container-log||container-log|", ""},
		{"--quiet|container-log", ""},
		{"", ""},
	} {
		line, ok := containerURI(strings.Split(test.args, "|"))
		if got := strings.Join(line, "|"); got != test.want || ok != (test.want != "") {
			t.Errorf("%s: %q, %t; want %q", test.args, got, ok, test.want)
		}
	}
}

func TestNamesOfContainersAreInPaths(t *testing.T) {
	for _, test := range []struct{ path, id, want string }{
		{"/l/{namespace}/{id}.log", "web-1", "/l/shop/web-1.log"},
		{"/l/log", "", "/l/log"},
		{"/l/{id}", "", ""},
		{"/l/{id}", "..", ""},
		{"/l/{id}", "a/b", ""},
		{"", "web-1", ""},
	} {
		f := containerFlags{path: fileName(test.path)}
		got, err := f.logPath(func(name string) string {
			return map[string]string{"CONTAINER_ID": test.id, "CONTAINER_NAMESPACE": "shop"}[name]
		})
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s of %q: %q, %v; want %q", test.path, test.id, got, err, test.want)
		}
	}
}
