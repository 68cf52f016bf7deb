package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkParse fails the test if parsing object loses a part of it. want is the object's decoded
// value.
func checkParse(t testing.TB, object string, want any) {
	t.Helper()
	for line, err := range ParseJSON(strings.NewReader(object)) {
		if err != nil {
			t.Fatalf("%v: %s", err, object)
		}
		b, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutEmpty(want), got); diff != "" {
			t.Fatalf("(-printed +parsed):\n%s", diff)
		}
	}
}

// withoutEmpty removes empty strings from objects, except the text of a line: omitempty leaves them
// out.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if required := name == "text" || name == "function" || name == "mode"; member == "" && !required {
				delete(v, name)
				continue
			}
			v[name] = withoutEmpty(member)
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}

// For a truncated line, or a line without an object, the sequence must yield an error. Later lines
// must be read.
func TestDamagedJSONLinesAreErrors(t *testing.T) {
	const log = `{"v":1,"text":"a"}
plain
{"v":2,"text":"b"}

{"v":1,"text":"c","elements":[{"tag":"pc","address":"12q"}]}
{"v":1,"text":"d","elements":[{"tag":"pc","address":"0x12","lookup":"0x12","frames":[{"function":"f","offset":"0x2","inlined":false}]}]}
{"v":1,"te`
	var got strings.Builder
	for line, err := range ParseJSON(strings.NewReader(log)) {
		if err != nil {
			fmt.Fprintln(&got, err)
			continue
		}
		fmt.Fprintln(&got, line.Text)
		for _, e := range line.Elements {
			fmt.Fprintf(&got, "  %s %#x %s+%#x\n", e.Tag, *e.Address, e.Frames[0].Func, e.Frames[0].Offset)
		}
	}
	const want = `a
line 2: invalid character 'p' looking for beginning of value
line 3: the schema has version 2, want 1
line 4: unexpected end of JSON input
line 5: "12q" is not a hexadecimal number such as 0x1f
d
  pc 0x12 f+0x2
line 7: unexpected end of JSON input
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The sequence must end at an error of the reader, or at a line longer than maxJSONLine.
func TestJSONLinesEndWithTheirReader(t *testing.T) {
	for line, err := range ParseJSON(iotest.ErrReader(errors.ErrUnsupported)) {
		if line != nil || err != errors.ErrUnsupported {
			t.Errorf("got %v, %v", line, err)
		}
	}
	n := 0
	for _, err := range ParseJSON(strings.NewReader("{}\n" + strings.Repeat("x", maxJSONLine+1) + "\n{}\n")) {
		if n++; n == 2 && (err == nil || err.Error() != "line 2 has more than 33554432 bytes") {
			t.Errorf("got %v", err)
		}
	}
	if n != 2 {
		t.Errorf("%d results, want 2", n)
	}
}
