package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/follow"
	"github.com/symfilter/symfilter/internal/input"
)

// doubtful are beginnings that do not determine the format of an input.
var doubtful = []string{
	"<", "<?xml version=\"1.0\"?>\n", "<?xml version=\"1.0\"?>\n<!-- made\nby -->\n", "# callgrind format\n", "version: 1\n", "pid: 7\ndesc: x\n",
	"version=2.0, arch=x86_64\n", "version=2.0, arch=x86_64\n# x\n", `{"log":"x","stream":"stdout"}` + "\n", `{"log":"x`, "2016-10-06T00:1", "v", " ", "\xef\xbb\xbf",
}

// A shared is a buffer that is safe for concurrent use.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *shared) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Reset()
}

// engineTo returns an engine that recognises the format of its input, and writes to out.
func engineTo(out io.Writer) engine {
	b := &batch{w: out}
	r := &reports{output: outputText, c: &config{}}
	return r.engine(input.Auto, &arrival{filter: filter.New(b, filter.Options{}), batch: b, add: func(doctor.Counts) {}})
}

func TestSilenceSettlesTheFormatOfAPipe(t *testing.T) {
	for _, begin := range doubtful {
		for _, packed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var out shared
				in, w := io.Pipe()
				p := &pass{engine: engineTo(&out), done: make(chan struct{})}
				p.silence = time.AfterFunc(silence, p.silent)
				p.silence.Stop()
				go p.read(in)
				send := func(s string) { io.WriteString(w, s) }
				if packed {
					z := gzip.NewWriter(w)
					send = func(s string) {
						io.WriteString(z, s)
						z.Flush()
					}
				}
				send(begin)
				time.Sleep(silence - time.Millisecond)
				send("") // in packed input, this is a block without text
				synctest.Wait()
				early := out.String()
				time.Sleep(2 * silence)
				synctest.Wait()
				if early != "" || out.String() != begin {
					t.Errorf("%q, packed %t: before 100 ms of silence %q is out, after them %q", begin, packed, early, out.String())
				}
				send("more\n")
				w.Close()
				<-p.done
				p.stop(false)
				if want := begin + "more\n"; out.String() != want {
					t.Errorf("packed %t: got %q, want %q", packed, out.String(), want)
				}
			})
		}
	}
}

// A sizes is a reader that fills each buffer, and records the buffer's length. most is the number
// of reads before it returns io.EOF.
type sizes struct {
	got  []int
	most int
}

func (s *sizes) Read(b []byte) (int, error) {
	if len(s.got) == s.most {
		return 0, io.EOF
	}
	s.got = append(s.got, len(b))
	return copy(b, bytes.Repeat([]byte("\n"), len(b))), nil
}

// The first block that is read must be small, since short inputs should need little memory. Further
// blocks must be large.
func TestOnlyLongInputsAreReadInLargeBlocks(t *testing.T) {
	in := &sizes{most: 4}
	p := &pass{engine: engineTo(io.Discard), done: make(chan struct{})}
	p.read(in)
	if want := []int{firstBlock, readBlock, readBlock, readBlock}; !slices.Equal(in.got, want) {
		t.Errorf("got reads of %d bytes, want %d", in.got, want)
	}
}

// pursue returns the sink for a followed file, and its followRun. The sink writes to out.
func pursue(t *testing.T, out io.Writer) (*follow.Sink, *followRun) {
	t.Helper()
	p := &followRun{stream: &stream{}, c: &config{}}
	p.out = commonOutput{w: out}
	p.engine = func(_ *os.File, _ string, _ bool, w io.Writer) engine { return engineTo(w) }
	sink, err := p.sink("log")
	if err != nil {
		t.Fatal(err)
	}
	return sink, p
}

// After a silence, the kept lines must be printed. The context must no longer have them, and
// Changed must report once that another checkpoint is due.
func TestSilenceSettlesTheFormatOfAFollowedFile(t *testing.T) {
	for _, begin := range doubtful {
		if !strings.HasSuffix(begin, "\n") {
			continue // followed lines are whole
		}
		synctest.Test(t, func(t *testing.T) {
			var out shared
			sink, _ := pursue(t, &out)
			io.WriteString(sink, begin)
			before, _ := sink.Context(nil)
			time.Sleep(silence - time.Millisecond)
			synctest.Wait()
			if out.String() != "" || sink.Changed() {
				t.Errorf("%q: before 100 ms of silence %q is out", begin, out.String())
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if out.String() != begin || !sink.Changed() || sink.Changed() {
				t.Errorf("%q: after 100 ms of silence %q is out, or it is not said once that the context changed", begin, out.String())
			}
			after, _ := sink.Context(nil)

			var again shared // output of the next run
			next, _ := pursue(t, &again)
			if err := next.Restore(before); err != nil {
				t.Fatal(err)
			}
			time.Sleep(silence)
			synctest.Wait()
			if again.String() != begin {
				t.Errorf("%q: after a restart before that and 100 ms of silence %q is out", begin, again.String())
			}
			next.Close()

			again.reset()
			next, _ = pursue(t, &again)
			if err := next.Restore(after); err != nil {
				t.Fatal(err)
			}
			time.Sleep(silence)
			synctest.Wait()
			io.WriteString(next, "more\n")
			next.Close()
			if again.String() != "more\n" {
				t.Errorf("%q: after a restart behind that %q is out", begin, again.String())
			}
			sink.Close()
		})
	}
}

// Lines that arrive while printing is off must never be printed. Lines that arrived before, and
// were kept because the format was unknown, must still be printed.
func TestQuietLinesOfAnUnknownFormatStayQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out shared
		sink, _ := pursue(t, &out)
		sink.Quiet(true)
		io.WriteString(sink, "# callgrind format\n")
		sink.Quiet(false)
		io.WriteString(sink, "more\n")
		sink.Close()
		if out.String() != "more\n" {
			t.Errorf("got %q", out.String())
		}

		out.reset()
		sink, _ = pursue(t, &out)
		io.WriteString(sink, "# callgrind format\n")
		sink.Quiet(true)
		io.WriteString(sink, "quiet\n")
		sink.Quiet(false)
		sink.Close()
		if out.String() != "# callgrind format\n" {
			t.Errorf("got %q", out.String())
		}
	})
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestAnErrorAfterSilenceEndsTheFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, p := pursue(t, full{})
		halted := 0
		p.halt = func() { halted++ }
		if _, err := io.WriteString(sink, "# callgrind format\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * silence)
		synctest.Wait()
		if halted != 1 {
			t.Errorf("halted %d times", halted)
		}
		if _, err := io.WriteString(sink, "more\n"); !errors.Is(err, errFull) {
			t.Errorf("Write: %v", err)
		}
		if err := sink.Suspend(); !errors.Is(err, errFull) {
			t.Errorf("Suspend: %v", err)
		}
	})
}
