package checkpoint

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

type sample struct {
	Version int          `json:"v"`
	Text    Text         `json:"text,omitempty"`
	Numbers List[uint64] `json:"numbers,omitempty"`
}

// Decode must restore any bytes of a Text. UTF-8 must stay readable in the JSON.
func TestWhatIsAppendedIsDecoded(t *testing.T) {
	for text, want := range map[string]string{
		"":                    `{"v":2}`,
		"plain <&> é\u2028\n": `{"v":2,"text":"plain <&> é\u2028\n"}`,
		"\xff {":              `{"v":2,"text":{"base64":"/yB7"}}`,
		"\ufffd":              `{"v":2,"text":"` + "\ufffd" + `"}`,
		`"` + `{"base64":""}`: `{"v":2,"text":"\"{\"base64\":\"\"}"}`,
	} {
		in := sample{Version: Version, Text: Text(text)}
		data := Append([]byte("before"), in)
		if got := strings.TrimPrefix(string(data), "before"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		var out sample
		if err := Decode(data[len("before"):], &out); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(out.Text), text); d != "" {
			t.Errorf("(-got +want)\n%s", d)
		}
	}
}

func TestRefusedCheckpoints(t *testing.T) {
	for data, want := range map[string]error{
		"":                                   ErrTorn,
		`{"v":2,"numbers":[1`:                ErrTorn,
		`{"v":2`:                             ErrTorn,
		"{{{context:1}}}\n":                  ErrVersion,
		`{"input":"cri"}` + "\n{{":           ErrVersion,
		`{"v":3,"text":"x"}`:                 ErrVersion,
		`{"v":3,"text":7}`:                   ErrVersion,
		`nonsense`:                           ErrDamaged,
		`{"v":2} x`:                          ErrDamaged,
		`{"v":2,"text":7}`:                   ErrDamaged,
		`{"v":2,"text":{"base64":"!"}}`:      ErrDamaged,
		`{"v":2,"numbers":{}}`:               ErrDamaged,
		`{"v":2,"numbers":[-1]}`:             ErrDamaged,
		`{"v":2,"numbers":[1e99]}`:           ErrDamaged,
		`{"v":2,"numbers":[[[[[[[[]]]]]]]]}`: ErrDamaged,
	} {
		err := Decode([]byte(data), new(sample))
		for _, reason := range []error{ErrTorn, ErrVersion, ErrDamaged} {
			if got := errors.Is(err, reason); got != (reason == want) {
				t.Errorf("%s: got %v, want %v", data, err, want)
			}
		}
	}
}

// Decode must fail at the limit of a List, even if its elements are small, and even inside another
// value.
func TestListsAreBounded(t *testing.T) {
	type large struct{ _ [16]uint64 }
	var into struct {
		Version int         `json:"v"`
		All     List[large] `json:"all"`
	}
	for _, element := range []string{"{}", "null"} {
		data := fmt.Sprintf(`{"v":2,"all":[%s%s]}`, strings.Repeat(element+",", maxList), element)
		err := Decode([]byte(data), &into)
		if !errors.Is(err, ErrDamaged) || len(into.All) > maxList {
			t.Errorf("%s: got %v and %d elements of %d bytes", element, err, len(into.All), unsafe.Sizeof(large{}))
		}
	}
}
