package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTextIsTroff(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"empty":              {"", "\n"},
		"paragraphs":         {"one\ntwo\n\nthree\n", "one\ntwo\n.P\nthree\n"},
		"an example":         {"run:\n\n  a --b\n    c\n", "run:\n.P\n.nf\na \\-\\-b\n  c\n.fi\n"},
		"what troff changes": {"a\\n \"b\"\n.TH\n'x\na.b\n", "a\\en \\(dqb\\(dq\n\\&.TH\n\\&'x\na.b\n"},
	} {
		if diff := cmp.Diff(test.want, Troff(test.text)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
