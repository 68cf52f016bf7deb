package filter

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A slowFinder finds no file. For a build ID in the map, it returns after the given time. For any
// other build ID, it returns only when the context ends.
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

// Each test writes a log in steps; the log has modules whose debug files are late or missing. Each
// step must take the time in want.
func TestPatience(t *testing.T) {
	const (
		first = "{{{module:0:a:elf:aa00}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n"
		other = "{{{module:1:b:elf:bb00}}}\n{{{mmap:0x2000:0x1000:load:1:rx:0}}}\n"
		third = "{{{module:2:c:elf:cc00}}}\n{{{mmap:0x3000:0x1000:load:2:rx:0}}}\n"
	)
	for _, test := range []struct {
		name   string
		finder slowFinder // a server
		local  slowFinder // a finder on this machine; nil: none
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
				f := New(&out, Options{Symbolizer: s, Patience: Patience{Local: 2 * time.Second, Servers: 2 * time.Second, PerMinute: 10 * time.Second}})
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

// However many files arrive late, the stream must wait for PerMinute in a minute, and no longer.
func TestWaitPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finder := slowFinder{}
		for i := range 20 {
			finder[fmt.Sprintf("aa%02x", i)] = 1500 * time.Millisecond
		}
		s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{finder}})
		defer s.Close()
		f := New(io.Discard, Options{Symbolizer: s, Patience: Patience{Local: 2 * time.Second, Servers: 2 * time.Second, PerMinute: 10 * time.Second}})
		begin := time.Now()
		for i := range 20 {
			fmt.Fprintf(f, "{{{module:%d:m:elf:aa%02x}}}\n{{{mmap:%#x:0x1000:load:%[1]d:rx:0}}}\n{{{pc:%#[3]x}}}\n", i, i, 0x1000*(i+1))
		}
		if got, want := time.Since(begin), 10*time.Second; got != want {
			t.Errorf("the stream was held up for %v, want %v", got, want)
		}
	})
}

// An onDisk finder finds the files in testdata/debug after a delay.
type onDisk struct {
	*buildid.Tree
	after time.Duration
	asked *atomic.Int64 // searches
}

func (f onDisk) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	f.asked.Add(1)
	select {
	case <-time.After(f.after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return f.Tree.Find(ctx, q, note)
}

// A line may wait for this machine at most Local, and for servers at most Servers. A file found on
// this machine must end both waits.
func TestServersAndThisMachineHaveTheirOwnPatience(t *testing.T) {
	const (
		here    = "{{{module:0:a:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n"
		nowhere = "{{{module:1:b:elf:bb00}}}\n{{{mmap:0x2000:0x1000:load:1:rx:0}}}\n"
	)
	for _, test := range []struct {
		name     string
		patience Patience
		after    time.Duration // delay of the search on this machine
		steps    []string
		want     []string // how long each step took
	}{
		{
			name:     "this machine alone",
			patience: Patience{Local: 2 * time.Second},
			after:    300 * time.Millisecond,
			steps:    []string{nowhere + here + "{{{pc:0x2000}}}\n", "{{{pc:0x2000}}}\n", "{{{pc:0x50018d}}}\n"},
			want:     []string{"300ms", "0s", "0s"},
		},
		{
			name:     "this machine is too slow",
			patience: Patience{Local: time.Second},
			after:    3 * time.Second,
			steps:    []string{here, "{{{pc:0x50018d}}}\n", nowhere, "{{{pc:0x2000}}}\n"},
			want:     []string{"0s", "1s", "0s", "0s"},
		},
		{
			name:     "servers for a short time",
			patience: Patience{Local: 2 * time.Second, Servers: 500 * time.Millisecond},
			after:    300 * time.Millisecond,
			steps:    []string{here, "{{{pc:0x50018d}}}\n", nowhere, "{{{pc:0x2000}}}\n"},
			want:     []string{"0s", "300ms", "0s", "500ms"},
		},
		{
			name:     "servers for longer",
			patience: Patience{Servers: 2 * time.Second},
			after:    300 * time.Millisecond,
			steps:    []string{here, "{{{pc:0x50018d}}}\n", nowhere, "{{{pc:0x2000}}}\n"},
			want:     []string{"0s", "300ms", "0s", "2s"},
		},
		{
			name:     "none",
			after:    300 * time.Millisecond,
			patience: Patience{PerMinute: time.Minute},
			steps:    []string{here, "{{{pc:0x50018d}}}\n"},
			want:     []string{"0s", "0s"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := symbolize.New(symbolize.Options{
					Finders: []symbolize.Finder{onDisk{buildid.NewTree("testdata/debug"), test.after, new(atomic.Int64)}},
					Servers: []symbolize.Finder{slowFinder{}},
				})
				defer s.Close()
				f := New(io.Discard, Options{Symbolizer: s, Patience: test.patience})
				var took []string
				for _, step := range test.steps {
					begin := time.Now()
					io.WriteString(f, step)
					took = append(took, time.Since(begin).String())
				}
				if diff := cmp.Diff(test.want, took); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

// With Patience.Never, a line must be printed with the answers that need no search and no open
// file. When an address occurs again, its answer must be known.
func TestNeverAnswersWhenTheAddressComesAgain(t *testing.T) {
	const (
		modules = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n"
		frames  = "at {{{pc:0x50018d:pc}}}, {{{pc:0x50018e}}}, {{{data:0x50018d}}}\n"
	)
	for _, json := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int64
			s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{onDisk{buildid.NewTree("testdata/debug"), time.Hour, &asked}}})
			defer s.Close()
			o := Options{Symbolizer: s, Patience: Patience{Local: time.Minute, Servers: time.Minute, Never: true}}
			if json {
				o.Output = JSON
			}
			l := NewLines(o)
			var c Context
			var dst []byte
			begin := time.Now()
			l.Append(nil, &c, []byte(modules))
			synctest.Wait()
			if n := asked.Load(); n != 1 {
				t.Errorf("%d searches after the module, want 1", n)
			}
			for range 3 {
				if _, got := l.Append(nil, &c, []byte(frames)); got.Pending != 3 {
					t.Errorf("before the file is found: %+v, want 3 elements pending", got)
				}
			}
			if time.Since(begin) != 0 {
				t.Errorf("lines waited for %v", time.Since(begin))
			}
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			dst, got := l.Append(dst[:0], &c, []byte(frames))
			if got.Resolved != 3 || asked.Load() != 1 {
				t.Errorf("when the file is found: %q, %+v, after %d searches", dst, got, asked.Load())
			}
			record := []byte(frames)
			if n := testing.AllocsPerRun(100, func() { dst, _ = l.Append(dst[:0], &c, record[:24]) }); n != 0 && !json {
				t.Errorf("a hot frame takes %v allocations", n)
			}
		})
	}
}
