package filter

import (
	"encoding/json"
	"testing"
)

// A list of modules in a record resolves the frames in a later record of the same log. This holds
// even if the Context was saved between them. The list resolves no frames in other logs.
func TestFactsOfARecordResolveTheNext(t *testing.T) {
	const (
		list = "#0  0x00007f31c2a0018d n/a (inventory + 0x18d)\nModule libledger.so with build-id a0a1a2a3a4a5a6a7\n"
		next = "#1  0x00007f31c2a0017b n/a (libledger.so + 0x17b)\n"
		want = "#1  0x00007f31c2a0017b ns::inner(int) (libledger.so + 0x17b) /src/a.cpp:9\n" +
			"  (inlined by) ns::middle(int) at /src/a.cpp:10\n" +
			"  (inlined by) int ns::Foo::run<int>(int) at /src/a.cpp:12\n"
	)
	o := resolvingDialects(t)
	o.Dialects.Images = nil
	l := NewLines(o)
	var log, other, restored Context
	if _, got := l.Append(nil, &log, []byte(list)); !got.Changed {
		t.Error("the list does not change the Context")
	}
	data, err := json.Marshal(&log)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &restored); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		context *Context
		want    string
	}{{"another log", &other, next}, {"the log", &log, want}, {"the restored log", &restored, want}, {"another log, after it", &other, next}} {
		if got, _ := l.Append(nil, c.context, []byte(next)); string(got) != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
}
