package filter

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	untilModules = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n"
	untilFrames  = "at {{{pc:0x50018d:pc}}}, {{{pc:0x50018e}}}, {{{data:0x50018d}}}\n"
)

// With Until, records must wait for files at most until the given time, even if the Patience allows
// more.
func TestRecordsWaitUntilATime(t *testing.T) {
	for _, test := range []struct {
		name     string
		patience Patience
		until    time.Duration // measured from the first frames; negative: no bound
		after    time.Duration // delay of the search
		took     time.Duration
		resolved int
	}{
		{"no bound", Patience{Local: 9 * time.Second}, -1, 3 * time.Second, 3 * time.Second, 3},
		{"in time", Patience{Local: 9 * time.Second}, 5 * time.Second, 3 * time.Second, 3 * time.Second, 3},
		{"too late", Patience{Local: 9 * time.Second}, 2 * time.Second, 3 * time.Second, 2 * time.Second, 0},
		{"too late for a server", Patience{Servers: 9 * time.Second}, 2 * time.Second, 3 * time.Second, 2 * time.Second, 0},
		{"less patience", Patience{Local: time.Second}, 2 * time.Second, 3 * time.Second, time.Second, 0},
		{"over before", Patience{Local: 9 * time.Second}, 0, 3 * time.Second, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{onDisk{buildid.NewTree("testdata/debug"), test.after, new(atomic.Int64)}}})
				defer s.Close()
				l := NewLines(Options{Symbolizer: s, Patience: test.patience})
				var c Context
				begin := time.Now()
				if test.until >= 0 {
					l.Until(begin.Add(test.until))
				}
				l.Append(nil, &c, []byte(untilModules))
				out, got := l.Append(nil, &c, []byte(untilFrames))
				if took := time.Since(begin); took != test.took || got.Resolved != test.resolved {
					t.Errorf("%q after %v, %d resolved, want %v and %d", out, took, got.Resolved, test.took, test.resolved)
				}
				time.Sleep(time.Minute)
				l.Until(time.Now().Add(time.Second))
				if out, got := l.Append(nil, &c, []byte(untilFrames)); got.Resolved != 3 {
					t.Errorf("later: %q, %d resolved, want 3", out, got.Resolved)
				}
			})
		})
	}
}

// A record must be printed at the time of Until, even while another question uses its debug file
// for longer. After this question, the same addresses must get their names.
func TestRecordsWithATimeDoNotWaitForOtherQuestions(t *testing.T) {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("testdata/debug")}})
	defer s.Close()
	l := NewLines(Options{Symbolizer: s, Patience: Patience{Local: time.Minute}})
	var c Context
	l.Append(nil, &c, []byte(untilModules))
	id, err := buildid.Parse([]byte("a0a1a2a3a4a5a6a7"))
	if err != nil {
		t.Fatal(err)
	}
	var during []byte
	if err := access.Symbolizer(s).(symbolFiles).Examine(context.Background(), nil, id, "a.out", func(*object.File) {
		l.Until(time.Now().Add(10 * time.Millisecond))
		during, _ = l.Append(nil, &c, []byte(untilFrames))
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Repeat(", a.out+0x40018d (BuildId: a0a1a2a3a4a5a6a7)", 3)+"\n", ","+strings.TrimPrefix(string(during), "at")); diff != "" {
		t.Errorf("during the other question (-want +got):\n%s", diff)
	}
	l.Until(time.Now().Add(time.Minute))
	if out, got := l.Append(nil, &c, []byte(untilFrames)); got.Resolved != 3 {
		t.Errorf("after it: %q, %d resolved, want 3", out, got.Resolved)
	}
}
