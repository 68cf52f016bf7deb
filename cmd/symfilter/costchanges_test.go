package main

import (
	"fmt"
	"testing"

	"github.com/spf13/pflag"
)

func TestSides(t *testing.T) {
	const refused = "refused"
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"a", "b"}, "[a] [b]"},
		{[]string{"a", "--", "b"}, "[a] [b]"},
		{[]string{"a", "b", "--", "c", "d", "e"}, "[a b] [c d e]"},
		{[]string{"--quiet", "a", "b", "-v", "--", "-c", "--quiet"}, "[a b] [-c --quiet]"},
		{[]string{"a", "--", "--", "b"}, "[a] [-- b]"},
		{[]string{"a", "b", "c"}, refused},
		{[]string{"a"}, refused},
		{nil, refused},
		{[]string{"--", "a", "b"}, refused},
		{[]string{"a", "b", "--"}, refused},
	} {
		c := newConfig()
		set := pflag.NewFlagSet("symfilter", pflag.ContinueOnError)
		commandLine().Define(set, c, ofCallgrind)
		if err := set.Parse(test.words); err != nil {
			t.Fatal(err)
		}
		c.dash = set.ArgsLenAtDash()
		before, after, err := c.sides(set.Args())
		got := fmt.Sprint(before, " ", after)
		if err != nil {
			got = refused
		}
		if got != test.want {
			t.Errorf("%q: %s, want %s", test.words, got, test.want)
		}
	}
}
