package main

import (
	"io"
	"testing"
)

// The hint must be printed once, and not for lines of an earlier run.
func TestHintsComeWhileFilesAreFollowed(t *testing.T) {
	const frame = "Call Trace:\n dump_stack_lvl+0x34/0x48\n"
	type lines struct {
		text  string
		quiet bool
	}
	for name, test := range map[string]struct {
		in   []lines
		want string
	}{
		"a log":       {[]lines{{"one\n", false}, {"two\n", false}}, ""},
		"a backtrace": {[]lines{{"one\n", false}, {frame, false}, {frame, false}}, ""},
		"a core file that an earlier run has printed": {[]lines{{"\x7fELF\x02\x01\x01\n", true}, {"\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00>\n", true}, {"more\n", false}}, ""},
		"a core file": {[]lines{{"\x7fELF\x02\x01\x01\n", false}, {"\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00>\n", false}, {"more\n", false}}, "symfilter: log: is a core file, not a log, and was printed unchanged; read it with gdb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, messages shared
			sink, p := pursue(t, &out)
			p.hints, p.diag = true, &diagnostics{w: &messages}
			quiet := false
			for _, l := range test.in {
				if l.quiet != quiet {
					quiet = l.quiet
					sink.Quiet(quiet)
				}
				if _, err := io.WriteString(sink, l.text); err != nil {
					t.Fatal(err)
				}
			}
			if got := messages.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			sink.Close()
		})
	}
}
