package filter

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
		from, to := arguments(name)
		got := name
		if from < to {
			got = name[:from] + "«" + name[from:to] + "»" + name[to:]
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWhatEndsAFrame(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, " ": true, " (/lib/libc.so.6+0x2b) (BuildId: aabb)": true, "[0x7f00]": true, "(main+0x1) [0x12]": true,
		" died": false, " (a": false, ")": false, "(a) b": false,
	} {
		if got := endsFrame([]byte(text)); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
