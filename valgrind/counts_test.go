package valgrind

import (
	"fmt"
	"testing"
)

func TestErrorsAtOnePlaceAreKeptOnce(t *testing.T) {
	p := newProcess(&files{}, 1)
	error := func(number int, kind, fn string) {
		p.keepError(&Record{
			Name:   "error",
			Items:  []Item{{Name: "unique", Text: fmt.Append(nil, number), Leaf: true}, {Name: "kind", Text: []byte(kind), Leaf: true}, {Name: "stack", First: 0, Last: 1}},
			Frames: []Frame{{IP: 0x1000, Fn: []byte(fn)}},
		})
	}
	error(1, "UninitCondition", "f")
	first := p.kept
	for number := 2; number <= 100; number++ {
		error(number, "UninitCondition", "f")
	}
	if each := (p.kept - first) / 99; each >= first/2 {
		t.Errorf("another error at the same place takes %d bytes, the first one %d", each, first)
	}
	error(101, "UninitValue", "f")
	error(102, "UninitCondition", "g")
	for number, want := range map[string]string{"1": "UninitCondition f", "100": "UninitCondition f", "101": "UninitValue f", "102": "UninitCondition g"} {
		if e := p.errors[number]; e == nil || e.kind+" "+string(e.frames[0].Fn) != want {
			t.Errorf("error %s is %+v, want %s", number, e, want)
		}
	}
	if len(p.errors) != 102 || len(p.errorsAt) != 3 {
		t.Errorf("%d errors at %d places, want 102 at 3", len(p.errors), len(p.errorsAt))
	}
}
