package daemon

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// awaitAnswer waits until the admin listener gives this answer.
func awaitAnswer(t *testing.T, d *Daemon, path string, status int, body string) {
	t.Helper()
	var code int
	var text string
	answers := testenv.Wait(func() bool {
		got := adminAnswer(t, d, "GET", path)
		code, text = got.Code, got.Body.String()
		return code == status && text == body+"\n"
	})
	if !answers {
		t.Fatalf("%s: got %d %s, want %d %s", path, code, text, status, body)
	}
}

func TestReadinessNamesWhatIsWrong(t *testing.T) {
	in := func(text string) io.Reader {
		r, w := io.Pipe()
		t.Cleanup(func() { r.Close() })
		go io.WriteString(w, text)
		return r
	}
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		d, _ := started(t, configuration(t, t.TempDir(), idle), Options{Stdin: in("")})
		awaitAnswer(t, d, "/readyz", 200, `{"ready":true}`)
		if got := d.status(); got != "1 pipeline" {
			t.Errorf("status: got %q", got)
		}
	})
	t.Run("an output that fails", func(t *testing.T) {
		t.Parallel()
		d, _ := started(t, configuration(t, t.TempDir(), strings.Replace(idle, "DIR/out.log", "/dev/full", 1)), Options{Stdin: in("a\n")})
		awaitAnswer(t, d, "/readyz", 503, `{"ready":false,"problems":[{"part":"output","pipeline":"app","problem":"failing: write /dev/full: no space left on device","ready":false}]}`)
		if got := d.status(); got != "1 pipeline; output of app: failing: write /dev/full: no space left on device" {
			t.Errorf("status: got %q", got)
		}
		awaitAnswer(t, d, "/healthz", 200, `{"healthy":true}`)
	})
	t.Run("an output that takes nothing", func(t *testing.T) {
		t.Parallel()
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer write.Close()
		defer read.Close()
		d, _ := started(t, configuration(t, t.TempDir(), strings.Replace(idle, "file: DIR/out.log", "stdout: text", 1)), Options{Stdin: in(strings.Repeat("a\n", 1<<20)), Stdout: write})
		awaitSeries(t, d, "output_blocked_seconds_total{output=app}")
		awaitAnswer(t, d, "/readyz", 200, `{"ready":true}`)
		later := time.Now().Add(blockedTooLong)
		want := []problem{{Part: "output", Pipeline: "app", Problem: "blocked for 30 s"}}
		if diff := cmp.Diff(want, d.problems(later)); diff != "" {
			t.Errorf("after 30 s (-want +got)\n%s", diff)
		}
		if got := d.stuck(0); got != "" {
			t.Errorf("%q is stuck, though a restart would not help", got)
		}
		go io.Copy(io.Discard, read)
		awaitSeries(t, d, "output_bytes_total{output=app}")
		for later := time.Now().Add(time.Minute); d.problems(later) != nil; time.Sleep(time.Millisecond) {
			if time.Now().After(later) {
				t.Fatal("an output that takes lines again stays blocked")
			}
		}
	})
	t.Run("an input that is not open", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		file := filepath.Join(dir, "state")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		d, _ := started(t, configuration(t, dir, movingLog), Options{})
		awaitAnswer(t, d, "/readyz", 503, `{"ready":false,"problems":[{"part":"input","pipeline":"app","problem":"mkdir `+file+`: not a directory","ready":false}]}`)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		awaitAnswer(t, d, "/readyz", 200, `{"ready":true}`)
	})
	t.Run("a configuration that was not reloaded", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		d, _ := started(t, configuration(t, dir, idle), Options{Stdin: in("")})
		awaitAnswer(t, d, "/readyz", 200, `{"ready":true}`)
		err := d.Refresh(func() (*Config, error) { return Parse([]byte("pipelines: {app: {imput: 1}}")) })
		if err == nil {
			t.Fatal("a mistake is taken")
		}
		want := []problem{{Part: "configuration", Problem: err.Error(), Ready: true}}
		if got := d.problems(time.Now()); !cmp.Equal(want, got) || !isReady(got) {
			t.Errorf("(-want +got)\n%s", cmp.Diff(want, got))
		}
		if got, want := d.status(), "1 pipeline; the last reload has failed: "+err.Error(); got != want {
			t.Errorf("status: got %q, want %q", got, want)
		}
		if err := d.Refresh(func() (*Config, error) { return configuration(t, dir, idle), nil }); err != nil {
			t.Fatal(err)
		}
		awaitAnswer(t, d, "/readyz", 200, `{"ready":true}`)
	})
	t.Run("its start and its end", func(t *testing.T) {
		t.Parallel()
		d, err := New(configuration(t, t.TempDir(), idle), Options{Log: noLog, Stdin: in("")})
		if err != nil {
			t.Fatal(err)
		}
		awaitAnswer(t, d, "/readyz", 503, `{"ready":false,"problems":[{"part":"daemon","problem":"starting","ready":false}]}`)
		d.end()
		awaitAnswer(t, d, "/readyz", 503, `{"ready":false,"problems":[{"part":"daemon","problem":"stopping","ready":false}]}`)
	})
}

// awaitSeries waits until a series is more than 0.
func awaitSeries(t *testing.T, d *Daemon, series string) {
	t.Helper()
	(&moving{Daemon: d, t: t}).await(series, more(0))
}

// The time of overlapping writes must count once. An output must count as blocked only while none
// of its writes makes progress.
func TestWritesOfSeveralStreamsAreOneOutput(t *testing.T) {
	var w writes
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	expect := func(now int, total, stalled time.Duration, failed error) {
		t.Helper()
		if gotTotal, gotStalled, err := w.state(at(now)); gotTotal != total*time.Second || gotStalled != stalled*time.Second || err != failed {
			t.Errorf("at %d: got %v, %v, %v; want %ds, %ds, %v", now, gotTotal, gotStalled, err, total, stalled, failed)
		}
	}
	expect(5, 0, 0, nil)
	w.begin(at(10))
	expect(12, 2, 2, nil)
	w.begin(at(15)) // a write of another stream
	w.end(at(20), nil)
	expect(25, 15, 5, nil)
	w.begin(at(25))
	w.end(at(30), io.ErrShortWrite)
	w.end(at(40), io.ErrShortWrite)
	expect(50, 30, 0, io.ErrShortWrite)
	w.begin(at(60))
	w.end(at(61), errReplaced) // replaced by a reload: the next output gets the rest
	expect(70, 31, 0, nil)
}
