package appearance

import (
	"strings"
	"testing"
)

// The arguments of a name are between « and ».
func TestArgumentsOfNames(t *testing.T) {
	for _, want := range []string{
		"main", "f()", "f«(int)»", "f«(int)» const", "f«(void (*)(int))»", "ns::f<int (*)(int)>«(int, long)» const &",
		"(anonymous namespace)::f", "(anonymous namespace)::f«(int)»", "ns::(anonymous namespace)::f<a>", "ns::{lambda(int)#1}::operator()«(int)» const",
		"X::operator()", "X::operator()() const", "f«(int)»+0x12", "main+0x12", "f(int)::{lambda()#1}", "f«(int)» [clone .cold]",
		"<a::B as c::D>::e", "core::ops::function::FnOnce<(A,)>::call", "main.(*T).run", "f)", "(a)", ")", "(", "", "??",
	} {
		name := strings.NewReplacer("«", "", "»", "").Replace(want)
		from, to := Arguments(name)
		got := name
		if from < to {
			got = name[:from] + "«" + name[from:to] + "»" + name[to:]
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
