package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestTestsAreFound(t *testing.T) {
	var p testPackage
	const src = `package p

func TestPlain(t *testing.T) { WithRace(t) }
func FuzzA(f *testing.F) {}
func TestWork(t *testing.T) { fuzztest.WithoutRace(t) }
func (s suite) TestMethod(t *testing.T) {}
`
	if err := p.addFile("p_test.go", src); err != nil || !slices.Equal(p.fuzz, []string{"FuzzA"}) || !slices.Equal(p.work, []string{"TestWork"}) {
		t.Errorf("fuzz %q, work %q, %v", p.fuzz, p.work, err)
	}
	p.path = "m/p"
	all := []testPackage{{path: "m/a"}, p, {path: "m/b", work: []string{"TestB", "TestWork"}}}
	got := strings.Join(workArgs([]string{"-v"}, all), " ")
	if want := "-v -run ^(TestB|TestWork)$ m/p m/b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	const hidden = "package p\nfunc helper(t *testing.T) { fuzztest.WithoutRace(t) }"
	if err := p.addFile("h_test.go", hidden); err == nil || !strings.HasPrefix(err.Error(), "h_test.go:2:29: WithoutRace is called by helper") {
		t.Errorf("got %v", err)
	}
}

func TestSkipsOfTestsThatWorkRunsAreNotCounted(t *testing.T) {
	var w strings.Builder
	got := report(strings.NewReader(`{"Action":"output","Package":"p","Test":"A","Output":"`+fuzztest.RunByWork+`\n"}
{"Action":"skip","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Elapsed":1}
`), &w)
	const want = "pass p: 1 passed, 0 failed, 0 skipped in 1.0 s\n"
	if got != (counts{passed: 1}) || w.String() != want {
		t.Errorf("got %+v, want 1 passed; it printed:\n%s", got, w.String())
	}
}
