package filter

import (
	"io"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/symbolize"
)

// The fast path for kernel frames must lay out the same text as markedCalls, or nothing. It must
// take all plain frames.
func TestTheFastPathForKernelsChangesNothing(t *testing.T) {
	answers := [][]symbolize.Frame{
		{{Func: "vfs_write", File: "fs/write.c", Line: 19, Column: 3}},
		{{Func: "vfs_write", File: "./fs/write.c", Line: 0}},
		{{Func: "lock", File: "lock.h", Line: 7}, {Func: "", File: "lock.c", Line: 8, Column: 1}, {Func: "vfs_write", File: "fs/write.c", Line: 19}},
		{{Func: "lock", Offset: 4}, {Func: "vfs_write", File: "fs/write.c", Line: 19}},
		{{Func: "vfs_write", Offset: 0xc7}},
	}
	lines := []string{
		" vfs_write+0xc7/0x3f0",
		"[   12.345678]  ? vfs_write+0xc7/0x3f0 [ledger]",
		"[   12.345678] RIP: 0010:vfs_write+0xc7/0x3f0 (x)",
		"\x1b[31m vfs_write+0xc7/0x3f0\x1b[0m",
		"(XEN)    [<ffff82d040203f01>] R entry.o#vfs_write+0xc7/0x3f0",
	}
	fast := 0
	for _, color := range []Color{ColorKeep, ColorNever, ColorAlways} {
		for _, line := range lines {
			l := dialect.NewReader(nil).Line([]byte(line), 1)
			if l == nil || len(l.Frames) != 1 {
				t.Fatalf("%q: no frame", line)
			}
			fr := &judge.Unplaced(nil, l.Frames)[0]
			for i, frames := range answers {
				f := New(io.Discard, Options{Symbolizer: testSymbolizer(t), Color: color})
				c := &f.tracer.locator
				mod := c.module(cacheModule{name: "vmlinux"})
				d := (&renderer{paths: &Paths{}}).frames(frames, mod, 0x1234, false)
				a := &answer{mod: mod, hasText: true, text: rendered{string(d.text), d.renderedParts}}
				c.markedCalls([]byte(line), newline, fr, fr.Number, a)
				want := string(f.layout.Buf)
				f.layout.Buf = f.layout.Buf[:0]
				if !simpleMarked(&f.lineFilter, []byte(line), newline, fr, &a.text) {
					if len(f.layout.Buf) > 0 {
						t.Errorf("%q, answer %d: %q is laid out", line, i, f.layout.Buf)
					}
					continue
				}
				fast++
				if got := string(f.layout.Buf); got != want {
					t.Errorf("%q, answer %d: %q, want %q", line, i, got, want)
				}
			}
		}
	}
	if fast < 2*4*3 {
		t.Errorf("the fast path has taken %d lines", fast)
	}
}
