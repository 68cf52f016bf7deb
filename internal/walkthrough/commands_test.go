package walkthrough

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommands(t *testing.T) {
	for _, tt := range []struct {
		name, block string
		want        [][]string
	}{
		{"a call", "symfilter -s out crash.log", [][]string{{"-s", "out", "crash.log"}}},
		{"by its path, by go run", "./symfilter a\ngo run ./cmd/symfilter b", [][]string{{"a"}, {"b"}}},
		{"after settings and sudo", "A=1 B='2 3' sudo symfilter a", [][]string{{"a"}}},
		{"in a pipe", "./server 2>&1 | symfilter -q >out.log || symfilter b & symfilter c", [][]string{{"-q"}, {"b"}, {"c"}}},
		{"in parentheses", "(cd a && symfilter b)", [][]string{{"b"}}},
		{"quotes", `symfilter '/var/log/*.log' "a b" ''`, [][]string{{"/var/log/*.log", "a b", ""}}},
		{"comments", "# symfilter a\nsymfilter b#c   # symfilter d", [][]string{{"b#c"}}},
		{"a line that continues", "symfilter a \\\n  b", [][]string{{"a", "b"}}},
		{"a here-document", "cat >x <<'END'\nsymfilter a\nEND\nsymfilter b", [][]string{{"b"}}},
		{"its name as an argument", "install symfilter /usr/bin\necho symfilter", nil},
		{"another program", "symfilterd --check", nil},
	} {
		if diff := cmp.Diff(tt.want, Commands("Text.\n\n```sh\n"+tt.block+"\n```\n\n```text\nsymfilter no\n```\n", "symfilter")); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s", tt.name, diff)
		}
	}
}

func TestCommandsOfBlocksThatAreNotRun(t *testing.T) {
	want := [][]string{{"a"}, {"b"}}
	if diff := cmp.Diff(want, Commands("```sh manual\nsymfilter a\n```\n* item\n\n  ```sh\n  symfilter b\n  ```\n", "symfilter")); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
