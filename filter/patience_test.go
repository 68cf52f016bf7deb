package filter

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A slowFinder says after a time, by build ID, that it has no file. What it is
// not told a time for, it never answers.
type slowFinder map[string]time.Duration

func (s slowFinder) Find(ctx context.Context, q buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	var answer <-chan time.Time
	if d, ok := s[q.ID.String()]; ok {
		answer = time.After(d)
	}
	select {
	case <-answer:
		return nil, fs.ErrNotExist
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestPatience: each row is a log of modules that are waited for; the times
// are those at which its lines came out.
func TestPatience(t *testing.T) {
	const (
		first = "{{{module:0:a:elf:aa00}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n"
		other = "{{{module:1:b:elf:bb00}}}\n{{{mmap:0x2000:0x1000:load:1:rx:0}}}\n"
		third = "{{{module:2:c:elf:cc00}}}\n{{{mmap:0x3000:0x1000:load:2:rx:0}}}\n"
	)
	for _, test := range []struct {
		name   string
		finder slowFinder // a server
		local  slowFinder // nil: there is none
		steps  []string   // written one after the other; "+3s" sleeps
		want   []string   // how long each step took
	}{
		{
			name:  "missing together, one wait",
			steps: []string{first + other + third, "{{{pc:0x1000}}}\n", "{{{pc:0x2000}}}\n", "{{{pc:0x3000}}}\n", "{{{pc:0x1004}}}\n"},
			want:  []string{"0s", "2s", "0s", "0s", "0s"},
		},
		{
			name:  "one after the other, one wait",
			steps: []string{first, "{{{pc:0x1000}}}\n", other, "{{{pc:0x2000}}}\n", third, "{{{pc:0x3000}}}\n"},
			want:  []string{"0s", "2s", "0s", "0s", "0s", "0s"},
		},
		{
			name:  "time passes without a line",
			steps: []string{first, "+1500ms", "{{{pc:0x1000}}}\n"},
			want:  []string{"0s", "500ms"},
		},
		{
			name:  "the next process of the same build is not waited for again",
			steps: []string{first, "{{{pc:0x1000}}}\n", "{{{reset}}}\n", first, "{{{pc:0x1000}}}\n"},
			want:  []string{"0s", "2s", "0s", "0s", "0s"},
		},
		{
			name:   "the answer ends the wait",
			finder: slowFinder{"aa00": time.Second, "bb00": 1500 * time.Millisecond},
			steps:  []string{first + other, "{{{pc:0x1000}}}\n", "{{{pc:0x2000}}}\n"},
			want:   []string{"0s", "1s", "500ms"},
		},
		{
			name:   "lines that came together wait together",
			finder: slowFinder{"aa00": 1200 * time.Millisecond, "bb00": 2500 * time.Millisecond, "cc00": 3600 * time.Millisecond},
			steps:  []string{first + "{{{pc:0x1000}}}\n" + other + "{{{pc:0x2000}}}\n" + third + "{{{pc:0x3000}}}\nplain\n"},
			want:   []string{"2s"},
		},
		{
			name:   "after a wait in vain, others begin when an answer comes",
			finder: slowFinder{"aa00": 3 * time.Second, "bb00": time.Second, "cc00": time.Second},
			steps:  []string{first, "{{{pc:0x1000}}}\n", other, "{{{pc:0x2000}}}\n", "+1500ms", "{{{pc:0x2000}}}\n", third, "{{{pc:0x3000}}}\n"},
			want:   []string{"0s", "2s", "0s", "0s", "0s", "0s", "1s"},
		},
		{
			name:  "after a wait in vain for a server, this machine is waited for",
			local: slowFinder{"aa00": time.Millisecond, "bb00": 20 * time.Millisecond, "cc00": 30 * time.Millisecond},
			steps: []string{first, "{{{pc:0x1000}}}\n", other, "{{{pc:0x2000}}}\n", third, "{{{pc:0x3000}}}\n", "{{{pc:0x3004}}}\n"},
			want:  []string{"0s", "2s", "0s", "20ms", "0s", "30ms", "0s"},
		},
		{
			name:  "after a wait in vain for this machine, there is no other",
			local: slowFinder{"aa00": time.Millisecond},
			steps: []string{first, "{{{pc:0x1000}}}\n", other, "{{{pc:0x2000}}}\n", third, "{{{pc:0x3000}}}\n"},
			want:  []string{"0s", "2s", "0s", "2s", "0s", "0s"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := symbolize.Options{Servers: []symbolize.Finder{test.finder}}
				if test.local != nil {
					o.Finders = []symbolize.Finder{test.local}
				}
				s := symbolize.New(o)
				defer s.Close()
				var out strings.Builder
				f := New(&out, Options{Symbolizer: s, Wait: 2 * time.Second, WaitPerMinute: 10 * time.Second})
				var got []string
				for _, step := range test.steps {
					if d, ok := strings.CutPrefix(step, "+"); ok {
						pause, err := time.ParseDuration(d)
						if err != nil {
							t.Fatal(err)
						}
						time.Sleep(pause)
						synctest.Wait()
						continue
					}
					begin := time.Now()
					io.WriteString(f, step)
					got = append(got, fmt.Sprint(time.Since(begin)))
				}
				if diff := cmp.Diff(got, test.want); diff != "" {
					t.Errorf("(-got +want):\n%s\n%s", diff, out.String())
				}
			})
		})
	}
}

// TestWaitPerMinute: files that come, each late, hold the stream up for no more
// than it allows.
func TestWaitPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finder := slowFinder{}
		for i := range 20 {
			finder[fmt.Sprintf("aa%02x", i)] = 1500 * time.Millisecond
		}
		s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{finder}})
		defer s.Close()
		f := New(io.Discard, Options{Symbolizer: s, Wait: 2 * time.Second, WaitPerMinute: 10 * time.Second})
		begin := time.Now()
		for i := range 20 {
			fmt.Fprintf(f, "{{{module:%d:m:elf:aa%02x}}}\n{{{mmap:%#x:0x1000:load:%[1]d:rx:0}}}\n{{{pc:%#[3]x}}}\n", i, i, 0x1000*(i+1))
		}
		if got, want := time.Since(begin), 10*time.Second; got != want {
			t.Errorf("the stream was held up for %v, want %v", got, want)
		}
	})
}
