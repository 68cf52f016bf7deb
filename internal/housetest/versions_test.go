package housetest

import (
	"regexp"
	"testing"
)

// At a tag, the modules of the Collector and its Helm chart must name the tagged version: the
// replace in the Collector's go.mod has no effect in other modules.
func TestModulesRequireTheVersionOfTheChangelog(t *testing.T) {
	version := func(name, pattern string) string {
		t.Helper()
		m := regexp.MustCompile(pattern).FindSubmatch(read(t, name))
		if m == nil {
			t.Fatalf("%s has nothing like %s", name, pattern)
		}
		return string(m[1])
	}
	want := version("CHANGELOG.md", `(?m)^## (\d+\.\d+\.\d+)`)
	for _, c := range []struct{ name, pattern string }{
		{"collector/go.mod", `\tgithub\.com/symfilter/symfilter v(\S+)\n`},
		{"collector/dist/go.mod", `\tgithub\.com/symfilter/symfilter v(\S+) // indirect\n`},
		{"collector/dist/go.mod", `\tgithub\.com/symfilter/symfilter/collector v(\S+)\n`},
		{"collector/helm/symfilter/Chart.yaml", `\nversion: (\S+)\n`},
		{"collector/helm/symfilter/Chart.yaml", `\nappVersion: (\S+)\n`},
		{"collector/dist/builder.yaml", `gomod: github\.com/symfilter/symfilter/collector v(\S+)\n`},
	} {
		if got := version(c.name, c.pattern); got != want {
			t.Errorf("%s has v%s, but the next version of CHANGELOG.md is %s", c.name, got, want)
		}
	}
}
