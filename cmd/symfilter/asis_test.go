package main

import (
	"slices"
	"testing"
)

func TestTheNameOfALinkSelectsTheCommand(t *testing.T) {
	args := []string{"--obj=app", "0x1"}
	for word, as := range map[string]bool{
		"symfilter": false, "/usr/bin/symfilter": false, "./symfilter-1.2": false,
		"tools/llvm-symbolizer": true, "llvm-addr2line-19": true, "addr2line": true,
	} {
		want := args
		if as {
			want = []string{"as", word, "--obj=app", "0x1"}
		}
		got := byName(word, args)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
		if d := dispatch(got, func(string) (string, bool) { return "", false }); d.as != as {
			t.Errorf("%s: dispatched as %+v", word, d)
		}
	}
}
