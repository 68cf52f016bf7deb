//go:build linux

package integration

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A logForm is a form of log that contains a program's output in records. seal makes the records
// from the output; unseal returns the output, and fails the test if a record cannot be parsed.
type logForm struct {
	name   string
	seal   func(log string) string
	unseal func(t *testing.T, log string) string
}

// eachLine returns a function that makes a record from each line of a log by calling seal.
func eachLine(seal func(line string) string) func(log string) string {
	return func(log string) string {
		var b strings.Builder
		for line := range strings.Lines(log) {
			b.WriteString(seal(strings.TrimSuffix(line, "\n")))
		}
		return b.String()
	}
}

func jsonLine(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

// member returns a function that parses lines of JSON, and returns the text of one member.
func member(path ...string) func(t *testing.T, log string) string {
	return func(t *testing.T, log string) string {
		t.Helper()
		var all strings.Builder
		for line := range strings.Lines(log) {
			var object map[string]any
			if err := json.Unmarshal([]byte(line), &object); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			for _, name := range path[:len(path)-1] {
				object = object[name].(map[string]any)
			}
			text, ok := object[path[len(path)-1]].(string)
			if !ok {
				t.Fatalf("no member %s: %s", path, line)
			}
			all.WriteString(strings.TrimSuffix(text, "\n") + "\n")
		}
		return all.String()
	}
}

// logForms returns all forms: with one record for each line, and with one record for the whole log.
func logForms() []logForm {
	all := []logForm{
		{"ecs", eachLine(func(line string) string {
			return jsonLine(map[string]any{"@timestamp": "2026-11-20T10:00:01Z", "log.level": "error", "message": line, "ecs": map[string]string{"version": "8.11"}})
		}), member("message")},
		{"ecs trace", func(log string) string {
			return jsonLine(map[string]any{"message": "the program died", "error": map[string]string{"stack_trace": log}})
		}, member("error", "stack_trace")},
		{"journalctl -o json", eachLine(func(line string) string {
			return jsonLine(map[string]string{"__CURSOR": "s=1", "_PID": "7", "MESSAGE": line})
		}), member("MESSAGE")},
		{"docker, written again", eachLine(func(line string) string {
			return strings.Replace(jsonLine(map[string]string{"stream": "stderr", "time": "2026-11-20T10:00:01Z", "log": line + "\n"}), ":", ": ", 1)
		}), member("log")},
		{"journalctl -o export", eachLine(func(line string) string {
			return "__CURSOR=s=1\n_PID=7\nMESSAGE=" + line + "\n_CMDLINE=/usr/bin/app 0x7\n\n"
		}), journalMessages},
	}
	others := runtimes()
	for _, name := range slices.Sorted(maps.Keys(others)) {
		r := others[name]
		all = append(all, logForm{name, func(log string) string { return strings.Join(r.lines(log, 1<<30), "") }, r.text})
	}
	return all
}

func journalMessages(t *testing.T, log string) string {
	t.Helper()
	var all strings.Builder
	for rest := []byte(log); len(rest) > 0; {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		if !ok {
			t.Fatalf("a field has no end: %q", rest)
		}
		rest = after
		name, value, isText := strings.Cut(string(line), "=")
		if !isText && len(line) > 0 {
			n := binary.LittleEndian.Uint64(rest)
			value, rest = string(rest[8:8+n]), rest[8+n+1:]
		}
		if name == "MESSAGE" {
			all.WriteString(value + "\n")
		}
	}
	return all.String()
}

// turns counts the logs that each test has checked. A test's name and its count alone select the
// form of a log, so that a failure can be repeated.
var turns sync.Map

// wantInRecords fails the test unless a log in records has the same output as the log alone. If log
// is nil, the last argument is the path of the log. The short test tries a different form for each
// log. The long test tries all forms, and also the markup that symfilter makes of them.
func wantInRecords(t *testing.T, log []byte, args ...string) {
	t.Helper()
	if log == nil {
		file, err := os.ReadFile(args[len(args)-1])
		if err != nil {
			t.Fatal(err)
		}
		log, args = file, args[:len(args)-1]
	}
	plain := strings.ToValidUTF8(string(log), "?")
	if !strings.HasSuffix(plain, "\n") {
		plain += "\n"
	}
	forms := logForms()
	if !long() {
		turn, _ := turns.LoadOrStore(t.Name(), new(atomic.Uint32))
		n := int(crc32.ChecksumIEEE([]byte(t.Name()))+turn.(*atomic.Uint32).Add(1)) % len(forms)
		forms = forms[n : n+1]
	}
	dir := t.TempDir()
	filtered := func(log string, args ...string) string {
		path := filepath.Join(dir, "log") // a file, so traces are not released by time
		if err := os.WriteFile(path, []byte(log), 0o666); err != nil {
			t.Fatal(err)
		}
		return run(t, nil, command, append(args, path)...)
	}
	want := filtered(plain, args...)
	for _, form := range forms {
		if diff := cmp.Diff(want, form.unseal(t, filtered(form.seal(plain), args...))); diff != "" {
			t.Errorf("in %s (-alone +inside):\n%s", form.name, diff)
		}
	}
	if !long() {
		return
	}
	elements := append([]string{"--output=markup"}, args...)
	made := filtered(plain, elements...)
	again := filtered(made, args...)
	for _, form := range forms {
		inside := filtered(form.seal(plain), elements...)
		if diff := cmp.Diff(made, form.unseal(t, inside)); diff != "" {
			t.Errorf("markup in %s (-alone +inside):\n%s", form.name, diff)
		}
		if diff := cmp.Diff(again, form.unseal(t, filtered(inside, args...))); diff != "" {
			t.Errorf("of markup in %s (-alone +inside):\n%s", form.name, diff)
		}
	}
}

// A log in records must get the same answers as the log alone, as text and as markup. The records
// must stay valid.
func TestBacktracesInRecordsAreResolved(t *testing.T) {
	need(t, "g++", "strip")
	w := newTraceTwin(t, "backtrace", twinBuild{})
	logs := map[string]string{"glibc": string(w.output(t, nil, "signal"))}
	folders := map[string]string{"glibc": w.debug}
	need(t, "clang-19", "setarch")
	need(t, sanitizerRuntime(t))
	s := newSanitized(t, "clang-19", "uaf.cc", []string{"-O1", "-fsanitize=address"})
	s.strip(t)
	logs["sanitizer"], folders["sanitizer"] = s.report(t, false), s.debug
	for name, log := range logs {
		log = strings.ToValidUTF8(log, "?")
		if !strings.HasSuffix(log, "\n") {
			log += "\n"
		}
		args := []string{"--debug-file-directory", folders[name]}
		want := run(t, []byte(log), command, args...)
		if want == log {
			t.Fatalf("%s: nothing is resolved in\n%s", name, log)
		}
		elements := append([]string{"--output=markup"}, args...)
		made := run(t, []byte(log), command, elements...)
		again := run(t, []byte(made), command, args...)
		for _, form := range logForms() {
			in := form.seal(log)
			inside := run(t, []byte(in), command, elements...)
			for _, test := range []struct{ name, want, out string }{
				{"text", want, run(t, []byte(in), command, args...)},
				{"markup", made, inside},
				{"text of markup", again, run(t, []byte(inside), command, args...)},
			} {
				if diff := cmp.Diff(test.want, form.unseal(t, test.out)); diff != "" {
					t.Errorf("%s of %s in %s (-alone +inside):\n%s", test.name, name, form.name, diff)
				}
			}
		}
	}
}
