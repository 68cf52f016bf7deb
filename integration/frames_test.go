//go:build linux

package integration

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// frame is a line of a backtrace in symfilter's output.
type frame struct {
	Number   int
	Inline   int    // 1 is the innermost inlined call; 0 the function itself
	Func     string // has "+0x…" if only a symbol is known; empty if nothing is known
	File     string
	Line     int
	Module   string
	Rel      uint64
	HasBuild bool // the line has the build ID, for other tools
}

var frameLine = regexp.MustCompile(`^\s*#(\d+)(?:\.(\d+))?\s+0x[0-9a-f]+ (?:(.*) )?\((.*)\+(0x[0-9a-f]+)\)( \(BuildId: [0-9a-f]+\))?$`)

// funcAndFile matches a function and its place. A path may contain blanks if it begins with "/",
// "./" or "../": no function's name has these after a blank.
var funcAndFile = regexp.MustCompile(`^(.*?) (\.{0,2}/.*?|\S+?):(\d+)(?::\d+)?$`)

func parseFrames(t *testing.T, out string) []frame {
	t.Helper()
	var all []frame
	for line := range strings.Lines(out) {
		m := frameLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		f := frame{Func: m[3], Module: m[4], HasBuild: m[6] != ""}
		f.Number, _ = strconv.Atoi(m[1])
		f.Inline, _ = strconv.Atoi(m[2])
		f.Rel, _ = strconv.ParseUint(m[5], 0, 64)
		if s := funcAndFile.FindStringSubmatch(f.Func); s != nil {
			f.Func, f.File = s[1], strings.TrimPrefix(s[2], "./")
			f.Line, _ = strconv.Atoi(s[3])
		}
		all = append(all, f)
	}
	return all
}

func TestParseFrames(t *testing.T) {
	got := parseFrames(t, `text #1 in a line
        #0.1  0x00007ffff7fbd917 next(unsigned long) const ./pool.h:33:5 (libledger.so+0x1917)
    #0    0x00007ffff7fbd917 total (long) /src/ledger.cc:27:16 (libledger.so+0x1917)
    #1    0x00007ffff7fbd917 main /src/a b.cc:27 (libledger.so+0x1917)
    #3    0x0000000000001234 memcpy+0x12 (libc.so.6+0x27249)
    #4    0x0000000000001234 (/lib/libc.so.6+0x27249) (BuildId: 93ac61)
`)
	want := []frame{
		{Number: 0, Inline: 1, Func: "next(unsigned long) const", File: "pool.h", Line: 33, Module: "libledger.so", Rel: 0x1917},
		{Number: 0, Func: "total (long)", File: "/src/ledger.cc", Line: 27, Module: "libledger.so", Rel: 0x1917},
		{Number: 1, Func: "main", File: "/src/a b.cc", Line: 27, Module: "libledger.so", Rel: 0x1917},
		{Number: 3, Func: "memcpy+0x12", Module: "libc.so.6", Rel: 0x27249},
		{Number: 4, Module: "/lib/libc.so.6", Rel: 0x27249, HasBuild: true},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d frames, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("frame %d:\ngot  %+v\nwant %+v", i, got[i], want[i])
		}
	}
}
