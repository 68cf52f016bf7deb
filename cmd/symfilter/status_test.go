package main

import (
	"strings"
	"testing"
)

// screen returns the text that a terminal shows. It interprets line ends, carriage returns and the
// erasing of lines.
func screen(written string) string {
	var lines []string
	line, at := "", 0
	for written != "" {
		switch {
		case strings.HasPrefix(written, "\x1b[K"):
			line, written = line[:at], written[3:]
		case strings.HasPrefix(written, "\x1b[?7l"), strings.HasPrefix(written, "\x1b[?7h"):
			written = written[5:]
		case written[0] == '\r':
			at, written = 0, written[1:]
		case written[0] == '\n':
			lines, line, at, written = append(lines, line), "", 0, written[1:]
		default:
			line = line[:at] + written[:1] + line[min(at+1, len(line)):]
			at, written = at+1, written[1:]
		}
	}
	return strings.Join(append(lines, line), "\n")
}

func TestStatusLineGivesWay(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []string // "status:…" sets the status, other texts are printed
		want  string   // text on the screen
	}{
		{"alone", []string{"status:fetching 1/2"}, "fetching 1/2"},
		{"goes on", []string{"status:fetching 100/200", "status:done"}, "done"},
		{"ends", []string{"status:fetching", "status:"}, ""},
		{"the log goes above it", []string{"status:fetching", "one\n", "two\n"}, "one\ntwo\nfetching"},
		{"ends below the log", []string{"one\n", "status:fetching", "two\n", "status:", "three\n"}, "one\ntwo\nthree\n"},
		{"a message gets a line of its own", []string{"login: ", "message:gone\n", "message:back\n", "login: me\n"}, "login: \ngone\nback\nlogin: me\n"},
		{"a prompt is not overwritten", []string{"status:fetching", "login: ", "status:still", "me\n"}, "login: me\nstill"},
	} {
		var terminal strings.Builder
		s := statusLine{w: &terminal}
		log, messages := besideStatus{&terminal, &s, true}, besideStatus{&terminal, &s, false}
		for _, step := range test.steps {
			if text, ok := strings.CutPrefix(step, "status:"); ok {
				s.set(text)
			} else if text, ok := strings.CutPrefix(step, "message:"); ok {
				messages.Write([]byte(text))
			} else if n, err := log.Write([]byte(step)); n != len(step) || err != nil {
				t.Errorf("%s: Write returned %d and %v", test.name, n, err)
			}
		}
		if got := screen(terminal.String()); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
