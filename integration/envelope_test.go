//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A runtime writes lines in the format of a container runtime.
type runtime struct {
	seal  func(stream, text string, whole bool) string
	open  func(line string) (text string, whole, ok bool)
	clock time.Time
}

func (r *runtime) tick() string {
	r.clock = r.clock.Add(1234567 * time.Nanosecond)
	return r.clock.Format(time.RFC3339Nano)
}

// runtimes returns a runtime for each format.
func runtimes() map[string]*runtime {
	epoch := time.Date(2096, 10, 6, 0, 17, 9, 0, time.UTC) // the log is newer than all programs
	cri, docker := &runtime{clock: epoch}, &runtime{clock: epoch}
	cri.seal = func(stream, text string, whole bool) string {
		tag := "P"
		if whole {
			tag = "F"
		}
		return cri.tick() + " " + stream + " " + tag + " " + text + "\n"
	}
	line := regexp.MustCompile(`^\S+Z std(?:out|err) ([PF]) ([^\n]*)\n$`)
	cri.open = func(s string) (text string, whole, ok bool) {
		m := line.FindStringSubmatch(s)
		if m == nil {
			return "", false, false
		}
		return m[2], m[1] == "F", true
	}
	type object struct {
		Log    string          `json:"log"`
		Stream string          `json:"stream"`
		Attrs  json.RawMessage `json:"attrs,omitempty"`
		Time   string          `json:"time"`
	}
	docker.seal = func(stream, text string, whole bool) string {
		if whole {
			text += "\n"
		}
		b, err := json.Marshal(object{text, stream, json.RawMessage(`{"tag":"x"}`), docker.tick()})
		if err != nil {
			panic(err)
		}
		return string(b) + "\n"
	}
	docker.open = func(s string) (text string, whole, ok bool) {
		var o object
		if err := json.Unmarshal([]byte(s), &o); err != nil || string(o.Attrs) != `{"tag":"x"}` || o.Time == "" {
			return "", false, false
		}
		text, whole = strings.CutSuffix(o.Log, "\n")
		return text, whole, true
	}
	return map[string]*runtime{"cri": cri, "docker": docker}
}

// lines returns a log in the runtime's format. Each n-th line is in parts.
func (r *runtime) lines(log string, n int) (lines []string) {
	number := 0
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		number++
		if k := len(line) / 2; number%n == 0 && k > 0 && !strings.Contains(line, "{{{m") {
			lines = append(lines, r.seal("stderr", line[:k], false))
			line = line[k:]
		}
		lines = append(lines, r.seal("stderr", line, true))
	}
	return lines
}

// text returns the content of a log's envelopes.
func (r *runtime) text(t *testing.T, log string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(log) {
		text, whole, ok := r.open(line)
		if !ok {
			t.Fatalf("%q is in no envelope", line)
		}
		b.WriteString(text)
		if whole {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestContainerLogs(t *testing.T) {
	log, golden := fixture(t)
	for name, r := range runtimes() {
		t.Run(name, func(t *testing.T) {
			in := strings.Join(r.lines(log, 3), "")
			out := run(t, []byte(in), command, "--no-default-debug-directories", "--debug-file-directory=../testdata/debug")
			if d := cmp.Diff(r.text(t, out), golden); d != "" {
				t.Errorf("(-got +want)\n%s", d)
			}
			for line := range strings.Lines(in) {
				if text, _, _ := r.open(line); !strings.Contains(line, "{{{") && strings.Contains(text, "INFO") && !strings.Contains(out, line) {
					t.Errorf("a line without markup has changed: %s", line)
				}
			}
			same := run(t, []byte(in), command, "--input="+name, "--no-default-debug-directories", "--debug-file-directory=../testdata/debug")
			if same != out {
				t.Error("--input changes what comes out")
			}
			if passed := run(t, []byte(in), command, "--output=markup"); passed != in {
				t.Error("--output=markup changes the log")
			}

			// Objects have the text of the lines, with time and stream.
			var text strings.Builder
			for line := range strings.Lines(run(t, []byte(in), command, "--output=json", "--no-default-debug-directories", "--debug-file-directory=../testdata/debug")) {
				var o struct{ Time, Stream, Text string }
				if err := json.Unmarshal([]byte(line), &o); err != nil || o.Stream != "stderr" {
					t.Fatalf("%v in %s", err, line)
				}
				if _, err := time.Parse(time.RFC3339Nano, o.Time); err != nil {
					t.Error(err)
				}
				text.WriteString(o.Text + "\n")
			}
			if d := cmp.Diff(text.String(), golden); d != "" {
				t.Errorf("objects: (-got +want)\n%s", d)
			}
		})
	}
}

// A container's log must be followed through Kubernetes' symbolic links, across rotations. Restarts
// must lose nothing, even between the parts of a line, or between a module and its frame.
func TestContainerLogsAreFollowed(t *testing.T) {
	log, golden := fixture(t)
	for name, r := range runtimes() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			pod := filepath.Join(dir, "pods", "ns_app_1", "app")
			links := filepath.Join(dir, "containers")
			for _, d := range []string{pod, links} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(pod, "0.log")
			link := filepath.Join(links, "app.log")
			if err := os.Symlink(file, link); err != nil {
				t.Fatal(err)
			}
			lines := r.lines(log, 3)
			cuts := []int{len(lines) / 7, len(lines) / 3, len(lines) - 9, len(lines) - 8, len(lines) - 5}
			args := []string{"--follow", "--state=" + filepath.Join(dir, "state"), "--start-at=1h", "--no-default-debug-directories", "--debug-file-directory=../testdata/debug", link}
			written := 0
			for i, cut := range append(slices.Clone(cuts), len(lines)) {
				p := startFollowing(t, filepath.Join(dir, "printed"), nil, args...)
				for half := range 2 { // the second after a rotation
					to := written + (cut-written)/(2-half)
					appendTo(t, file, strings.Join(lines[written:to], ""))
					if written = to; half == 0 {
						if err := os.Rename(file, fmt.Sprintf("%s.2016100%d-001709", file, i)); err != nil {
							t.Fatal(err)
						}
					}
				}
				if cut == len(lines) {
					p.wait(t, func(printed string) bool { return strings.Contains(printed, "restarting in 5 s") })
				} else {
					p.waitState(t, filepath.Join(dir, "state"))
				}
				p.stop(t)
			}
			got, err := os.ReadFile(filepath.Join(dir, "printed"))
			if err != nil {
				t.Fatal(err)
			}
			wantOnce(t, r.text(t, string(got)), golden)
		})
	}
}

// waitState waits for a checkpoint, which proves that some lines were read.
func (p *following) waitState(t *testing.T, state string) {
	t.Helper()
	p.wait(t, func(string) bool {
		b, err := os.ReadFile(state)
		return err == nil && len(bytes.TrimSpace(b)) > 0
	})
}

func TestEndlessContainerLines(t *testing.T) {
	size := int64(64 << 20)
	if long() {
		size = 2 << 30
	}
	const maxPeak = 96 << 20 // bytes resident
	for name, r := range runtimes() {
		for kind, line := range map[string]string{
			"parts":                 r.seal("stdout", strings.Repeat("x", 16<<10), false),
			"parts with an element": r.seal("stdout", "{{{bt:0:0x"+strings.Repeat("1", 1000), false),
			"one line":              strings.TrimSuffix(r.seal("stdout", strings.Repeat("{{{", 1000), false), "\n"),
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				p := start(t, "--input="+name)
				got := make(chan int64, 1)
				go func() {
					n, _ := drain(p.out)
					got <- n
				}()
				wrote := int64(0)
				block := []byte(strings.Repeat(line, max(1, 256<<10/len(line))))
				for wrote < size {
					n, err := p.in.Write(block)
					if wrote += int64(n); err != nil {
						t.Fatalf("%v\n%s", err, p.stderr.Bytes())
					}
				}
				peak := p.peak(t)
				p.in.Close()
				if n := <-got; n < wrote {
					t.Errorf("%d bytes came out of %d", n, wrote)
				}
				if err := p.cmd.Wait(); err != nil {
					t.Errorf("%v\n%s", err, p.stderr.Bytes())
				}
				if peak > maxPeak {
					t.Errorf("got a peak of %d MiB, want at most %d", peak>>20, maxPeak>>20)
				}
			})
		}
	}
}

// drain reads to the end, and returns the number of bytes.
func drain(f *os.File) (n int64, err error) {
	block := make([]byte, 256<<10)
	for {
		m, err := f.Read(block)
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
}
