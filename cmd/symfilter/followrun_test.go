package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/follow"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/written"
)

// Lines of several files arrive in parts. They must be printed in order: unchanged, below headers
// with the file's name, or each after its file's name.
func TestLinesOfSeveralFiles(t *testing.T) {
	type lines struct{ file, text string }
	for name, test := range map[string]struct {
		c       config
		headers bool
		in      []lines
		want    string
	}{
		"as they are": {in: []lines{{"a", "one\n"}, {"b", "two\n"}, {"a", "three\nfour\n"}}, want: "one\ntwo\nthree\nfour\n"},
		"headers":     {headers: true, in: []lines{{"a", "one\n"}, {"a", "two\n"}, {"b\x1b", "three\n"}, {"a", "four\n"}}, want: "==> a <==\none\ntwo\n\n==> b\\x1b <==\nthree\n\n==> a <==\nfour\n"},
		"names":       {c: config{follow: followFlags{withName: true}}, in: []lines{{"a", "one\ntwo\n"}, {"b", "in "}, {"b", "parts\n"}, {"a", "\n"}}, want: "a: one\na: two\nb: in parts\na: \n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := &commonOutput{w: &out, headers: test.headers}
			files := map[string]*fileLines{}
			for _, l := range test.in {
				if files[l.file] == nil {
					files[l.file] = o.of(l.file, &test.c)
				}
				if n, err := io.WriteString(files[l.file], l.text); n != len(l.text) || err != nil {
					t.Fatal(n, err)
				}
			}
			if d := cmp.Diff(out.String(), test.want); d != "" {
				t.Errorf("(-got +want)\n%s", d)
			}
		})
	}
}

func TestLinesAreNotInterleaved(t *testing.T) {
	var out bytes.Buffer
	o := &commonOutput{w: &out}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			w := o.of("", &config{})
			for range 200 {
				for range 4 {
					io.WriteString(w, strings.Repeat(string(rune('a'+i)), 10))
				}
				io.WriteString(w, "\n")
			}
			io.WriteString(w, "unfinished")
			w.release()
		})
	}
	all.Wait()
	n := 0
	for line := range strings.Lines(strings.ReplaceAll(out.String(), "unfinished", "")) {
		if n++; strings.Trim(line, line[:1]) != "\n" || len(line) != 41 {
			t.Fatalf("got %q", line)
		}
	}
	if n != 1600 {
		t.Errorf("%d lines, want 1600", n)
	}
}

// If a killed run has left an unfinished line, the next run must end that line.
func TestTornLinesAreEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	for text, want := range map[string]string{"": "", "whole\n": "whole\n", "whole\nto": "whole\nto\n"} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if written.IsTorn(out) {
			if err := (&commonOutput{w: out}).endLine(); err != nil {
				t.Error(err)
			}
		}
		if got, _ := os.ReadFile(path); string(got) != want && string(got) != text { // some systems have no /dev/fd
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// While printing is off, only lines that may change the meaning of later lines may be filtered.
func TestQuietLines(t *testing.T) {
	var out bytes.Buffer
	c := config{}
	p := &followRun{stream: &stream{}, c: &c}
	p.out = commonOutput{w: &out}
	p.engine = func(_ *os.File, _ string, _ bool, w io.Writer) engine {
		f := filter.New(w, filter.Options{})
		in := input.New(input.Auto, input.Translators{Markup: func() io.WriteCloser { return f }})
		return engine{WriteCloser: in, input: in, sniffer: &doctor.Sniffer{}}
	}
	sink, err := p.sink("log")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(sink, "loud\n")
	sink.Quiet(true)
	io.WriteString(sink, "quiet\n{{{module:0:a.so:elf:aabb}}}\nquiet {{{pc:0x1004}}}\nx {{{mmap:0x1000:0x1000:load:0:rx:0}}}\nquiet\n{{{bt:0:0x1004}}} {{{mm")
	sink.Quiet(false)
	io.WriteString(sink, "{{{pc:0x1004:pc}}}\n")
	context, ok := sink.Context(nil)
	if !ok {
		t.Error("no context")
	}
	next, err := p.sink("log")
	if err == nil {
		err = next.Restore(context)
	}
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(next, "{{{pc:0x1008:pc}}}\n")
	const want = "loud\na.so+0x4 (BuildId: aabb)\na.so+0x8 (BuildId: aabb)\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if err := next.Restore([]byte("nonsense")); err == nil {
		t.Error("nonsense is restored")
	}
	fmt.Fprintln(next, "as new {{{pc:0x1008:pc}}}")
	if got := strings.TrimPrefix(out.String(), want); got != "as new [[[pc:0x1008:pc]]]\n" {
		t.Errorf("behind nonsense got %q", got)
	}
}

// Lines must be kept until the format is known. A rotation must print them, even if the format is
// still unknown.
func TestLinesOfAnUnknownFormatArePrintedAtARotation(t *testing.T) {
	var out bytes.Buffer
	p := &followRun{stream: &stream{}, c: &config{}}
	p.out = commonOutput{w: &out}
	p.engine = func(_ *os.File, _ string, _ bool, w io.Writer) engine {
		in := input.New(input.Auto, input.Translators{Markup: func() io.WriteCloser { return filter.New(w, filter.Options{}) }})
		return engine{WriteCloser: in, input: in, sniffer: &doctor.Sniffer{}}
	}
	sink, err := p.sink("log")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(sink, "pid: 7\n")
	if out.Len() > 0 {
		t.Fatalf("%q is printed at once", out.String())
	}
	next, err := sink.Rotated()
	if err != nil {
		t.Fatal(err)
	}
	if next == nil {
		next = sink
	}
	io.WriteString(next, "plain\n")
	if got, want := out.String(), "pid: 7\nplain\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// An engine that is closed after a failed restore must print nothing.
func TestEnginesThatCannotBeRestoredAreClosed(t *testing.T) {
	var out bytes.Buffer
	var begun, closed int
	p := &followRun{stream: &stream{}, c: &config{}}
	p.out = commonOutput{w: &out}
	p.engine = func(_ *os.File, _ string, _ bool, w io.Writer) engine {
		begun++
		in := input.New(input.Markup, input.Translators{Markup: func() io.WriteCloser { return filter.New(w, filter.Options{}) }})
		return engine{WriteCloser: closing{in, &closed}, input: in, sniffer: &doctor.Sniffer{}}
	}
	sink, err := p.sink("log")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(sink, "unfinished {{{module:1:a.so:elf:aabb}}}\n")
	before := out.Len()
	if err := sink.Restore([]byte("nonsense")); err == nil {
		t.Error("nonsense is restored")
	}
	if begun != 2 || closed != 1 || out.Len() != before {
		t.Errorf("%d engines, %d closed, printed %q; want 2, 1, and nothing", begun, closed, out.String()[before:])
	}
}

type closing struct {
	io.WriteCloser
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return c.WriteCloser.Close()
}

// The first report must come after a minute. Further reports must come at most once an hour, and
// only with new addresses.
func TestFollowersPrintWhatStayedUnresolvedOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var out bytes.Buffer
		var printed []string
		p := &followRun{stream: &stream{}, c: &config{}}
		p.out = commonOutput{w: &out}
		p.remindOf = func(sum doctor.Counts) { printed = append(printed, time.Since(start).String()+": "+sum.String()) }
		p.engine = func(_ *os.File, _ string, _ bool, w io.Writer) engine {
			f := filter.New(w, filter.Options{})
			in := input.New(input.Markup, input.Translators{Markup: func() io.WriteCloser { return f }})
			e := engine{WriteCloser: in, input: in, sniffer: &doctor.Sniffer{}, counts: func() doctor.Counts { return doctor.CountsOf(f) }}
			e.end = func() { p.unresolved.Add(e.counts()) }
			return e
		}
		ctx, cancel := context.WithCancel(t.Context())
		go p.remind(ctx)
		var sinks []*follow.Sink
		for range 2 {
			sink, err := p.sink("log")
			if err != nil {
				t.Fatal(err)
			}
			sinks = append(sinks, sink)
		}
		write := func(i int, line string) { fmt.Fprintln(sinks[i], line) }

		write(0, "nothing to resolve")
		time.Sleep(10*time.Minute + time.Second)
		write(0, "{{{module:0:a.so:elf:aabb}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\nat {{{pc:0x1010:pc}}}")
		time.Sleep(time.Minute)
		write(1, "at {{{pc:0x9010:pc}}}") // not printed for an hour
		sinks[0].Close()                  // its counts are added to the sum
		time.Sleep(time.Hour)
		time.Sleep(5 * time.Hour) // nothing new, so no line
		write(1, "at {{{pc:0x9010:pc}}}")
		time.Sleep(2 * time.Minute)
		sinks[1].Close()
		cancel()
		synctest.Wait()
		want := []string{
			"11m0s: 1 of 1 address stayed unresolved: a.so (1)",
			"1h11m0s: 2 of 2 addresses stayed unresolved: a.so (1), no module (1)",
			"6h12m0s: 3 of 3 addresses stayed unresolved: no module (2), a.so (1)",
		}
		if diff := cmp.Diff(want, printed); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
	})
}
