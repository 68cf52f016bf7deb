package profile

import (
	"testing"

	"github.com/symfilter/symfilter/internal/report"
)

func TestFramesOfValgrindAreRead(t *testing.T) {
	for text, want := range map[string]report.RawFrame{
		"0x109247: main (prog.cc:16)":                       {Addr: 0x109247, Func: "main", File: "prog.cc", Line: 16},
		"0x109247: main (/src/a (b)/prog.cc:16)":            {Addr: 0x109247, Func: "main", File: "/src/a (b)/prog.cc", Line: 16},
		"0x109247: std::f(int)::{lambda()#1} (a.cc:3)":      {Addr: 0x109247, Func: "std::f(int)::{lambda()#1}", File: "a.cc", Line: 3},
		"0x109247: ??? (prog.cc:16)":                        {Addr: 0x109247, File: "prog.cc", Line: 16},
		"0x109247: ??? (in /opt/app)":                       {Addr: 0x109247, Object: "/opt/app"},
		"0x109247: operator()(int) (in /opt/a (in /b)/app)": {Addr: 0x109247, Func: "operator()(int)", Object: "/opt/a (in /b)/app"},
		"0x109247: (below main) (in /lib/libc.so.6)":        {Addr: 0x109247, Func: "(below main)", Object: "/lib/libc.so.6"},
		"0x109247: operator()(int)":                         {Addr: 0x109247, Func: "operator()(int)"},
		"0x37: ???":                                         {Addr: 0x37},
	} {
		if got, ok := parseFrame([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "[root]", "main (prog.cc:16)", "0x: main", "0x12345678901234567: main", "109247: main", "0x109247 main"} {
		if got, ok := parseFrame([]byte(text)); ok {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}
