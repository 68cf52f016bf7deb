//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A pipeline is a running symfilter between two pipes.
type pipeline struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File
	stderr bytes.Buffer
}

func start(t *testing.T, args ...string) *pipeline {
	t.Helper()
	p := &pipeline{cmd: exec.Command(command, args...)}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.cmd.Stderr = in, &p.stderr
	p.out = startPiped(t, p.cmd, &p.cmd.Stdout)
	t.Cleanup(func() {
		p.in.Close()
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	return p
}

func (p *pipeline) peak(t *testing.T) int64 {
	t.Helper()
	return testenv.PeakMemory(t, p.cmd.Process.Pid)
}

// If a program writes a line and waits, the line must soon arrive at the other end of the pipe.
func TestLinesAndPromptsArriveAtOnce(t *testing.T) {
	tests := []struct {
		name, write, want string
		within            time.Duration
	}{
		{"a line", "ready\n", "ready\n", 50 * time.Millisecond},
		{"a line with an element", "hook {{{symbol:_ZN9inventory7on_exitEv}}}\n", "hook inventory::on_exit()\n", 50 * time.Millisecond},
		{"a prompt without a newline", "login: ", "login: ", 200 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t)
			// The first line includes the start of the process and is not measured.
			roundTrip(t, p, "hello\n", "hello\n")
			var took []time.Duration
			for range 3 { // the best of three, since the machine may be busy
				d := roundTrip(t, p, tt.write, tt.want)
				took = append(took, d)
				if d <= tt.within {
					return
				}
				if !strings.HasSuffix(tt.write, "\n") {
					roundTrip(t, p, "\n", "\n")
				}
			}
			t.Errorf("got %v, want one within %v", took, tt.within)
		})
	}
}

// roundTrip writes s and returns the time until want arrives.
func roundTrip(t *testing.T, p *pipeline, s, want string) time.Duration {
	t.Helper()
	begin := time.Now()
	if _, err := io.WriteString(p.in, s); err != nil {
		t.Fatal(err)
	}
	if err := p.out.SetReadDeadline(begin.Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(p.out, got); err != nil || string(got) != want {
		t.Fatalf("got %q (%v), want %q", got[:n], err, want)
	}
	return time.Since(begin)
}

// oddities returns about n bytes without markup that may appear in logs: every byte value, broken
// UTF-8, all line ends, colours, braces, malformed elements. The last line has no end.
func oddities(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"plain words ", "\n", "\r\n", "\r", "\x00", "\xff\xfe\xc3(", "\u00e9\u202e", "\x1b[31m", "\x1b[0m", "\x1b[38;5;1m", "\x1b[", "\x1b]0;t\a",
		"{", "{{", "{{{", "{{{{{", "}}}", "{{{}}}", "{{{:}}}", "{{{ pc:0x1}}}", "{{{PC:0x1}}}", "{{{pc}}}", "{{{pc:}}}", "{{{bt:x:0x1}}}",
		"{{{bt:0:1}}}", "{{{mmap:1}}}", "{{{module:0:a:pe:00}}}", "{\"a\":{\"b\":{\"c\":1}}}", "{{{", "\t", strings.Repeat("x", 300),
	}
	all := make([]byte, 0, n+512)
	for len(all) < n {
		if r.IntN(8) == 0 {
			all = append(all, byte(r.Uint32()))
		} else {
			all = append(all, pieces[r.IntN(len(pieces))]...)
		}
	}
	return append(bytes.TrimRight(all, "\r\n"), "no final newline"...)
}

func TestLogWithoutMarkupComesOutAsItIs(t *testing.T) {
	input := oddities(8 << 20)
	dir := t.TempDir()
	path := filepath.Join(dir, "in.log")
	if err := os.WriteFile(path, input, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		feed func(cmd *exec.Cmd)
	}{
		{"a file by name", func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, path) }},
		{"a file on standard input", func(cmd *exec.Cmd) {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			cmd.Stdin = f
		}},
		{"a pipe, whole", func(cmd *exec.Cmd) { cmd.Stdin = bytes.NewReader(input) }},
		{"a pipe, in pieces of odd sizes", func(cmd *exec.Cmd) { cmd.Stdin = &pieces{rest: input, sizes: rand.New(rand.NewPCG(3, 4))} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := os.Create(filepath.Join(dir, "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd := exec.Command(command)
			tt.feed(cmd)
			cmd.Stdout = out
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(out.Name())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, input) {
				t.Errorf("%s", firstDifference(got, input))
			}
		})
	}
}

// A pieces is a reader whose reads have random sizes.
type pieces struct {
	rest  []byte
	sizes *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+p.sizes.IntN(40000))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func firstDifference(got, want []byte) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	around := func(b []byte) []byte { return b[max(0, min(i, len(b))-40):min(len(b), i+40)] }
	return fmt.Sprintf("got %d bytes, want %d; first difference at %d:\ngot  %q\nwant %q", len(got), len(want), i, around(got), around(want))
}

// An endless line must take constant memory. It has 64 MiB, or with TEST_LONG=1 2 GiB.
func TestEndlessLineTakesNoMemory(t *testing.T) {
	// bytes resident, including the Go runtime with its stacks and the buffers of both pipes
	const maxPeak = 64 << 20
	size := int64(64 << 20)
	if long() {
		size = 2 << 30
	}
	for _, unit := range []string{"{{{", "{{{bt:0:0x1", "\x1b[1m", "x"} {
		t.Run(fmt.Sprintf("%q", unit), func(t *testing.T) {
			p := start(t)
			type result struct {
				n   int64
				sum [sha256.Size]byte
				err error
			}
			wrote, got := make(chan result, 1), make(chan result, 1)
			block := []byte(strings.Repeat(unit, (1<<20)/len(unit)))
			go func() {
				h := sha256.New()
				var r result
				for r.n < size && r.err == nil {
					h.Write(block)
					_, r.err = p.in.Write(block)
					r.n += int64(len(block))
				}
				h.Sum(r.sum[:0])
				wrote <- r
			}()
			go func() {
				h := sha256.New()
				var r result
				r.n, r.err = io.Copy(h, bufio.NewReaderSize(p.out, 1<<20))
				h.Sum(r.sum[:0])
				got <- r
			}()
			want := <-wrote
			if want.err != nil {
				t.Fatalf("%v\n%s", want.err, p.stderr.Bytes())
			}
			peak := p.peak(t)
			p.in.Close()
			if r := <-got; r != want {
				t.Errorf("got %d bytes (%v), want %d, the same", r.n, r.err, want.n)
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

// If the reader closes the output, symfilter must end without a message.
func TestClosedOutputEndsQuietly(t *testing.T) {
	p := start(t)
	roundTrip(t, p, "first\n", "first\n")
	p.out.Close()
	for {
		if _, err := p.in.Write(make([]byte, 64<<10)); err != nil {
			break
		}
	}
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) || p.stderr.Len() > 0 {
		t.Errorf("got %v and %q on standard error, want neither", err, p.stderr.String())
	}
}
