package main

import (
	"io"
	"testing"
)

// The hint about a file in which nothing can be resolved comes while it is followed: once, and not
// for lines of an earlier run.
func TestHintsComeWhileFilesAreFollowed(t *testing.T) {
	const (
		frame = "Call Trace:\n"
		hint  = "symfilter: log: has a backtrace, but no symbolizer markup, so nothing was resolved; " + hintKernel + "\n"
	)
	type lines struct {
		text  string
		quiet bool
	}
	for name, test := range map[string]struct {
		in   []lines
		want string
	}{
		"a log":                         {[]lines{{"one\n", false}, {"two\n", false}}, ""},
		"a backtrace":                   {[]lines{{"one\n", false}, {frame, false}, {frame, false}}, hint},
		"one after markup":              {[]lines{{"{{{reset}}}\n", false}, {frame, false}}, ""},
		"one after markup, not printed": {[]lines{{"{{{reset}}}\n", true}, {frame, false}}, ""},
		"one that is not printed":       {[]lines{{frame, true}, {"one\n", false}}, ""},
		"one that is printed later":     {[]lines{{frame, true}, {frame, false}}, hint},
		"a core file":                   {[]lines{{"\x7fELF\x02\x01\x01\n", false}, {"\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00>\n", false}, {"more\n", false}}, "symfilter: log: is a core file, not a log, and was printed unchanged; use gdb to read it\n"},
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
