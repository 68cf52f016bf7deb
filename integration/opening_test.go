//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// An opening is the beginning of an input, with the name of the format that recognizes it.
type opening struct{ name, format, text string }

func openings(t *testing.T) (all []opening) {
	t.Helper()
	ar, err := txtar.ParseFile("../internal/input/testdata/openings.txtar")
	if err != nil {
		t.Fatal(err)
	}
	repeated := regexp.MustCompile(`(?s)\[\[(\d+) (.*?)\]\]`)
	for _, f := range ar.Files {
		format, _, _ := strings.Cut(f.Name, ",")
		text := repeated.ReplaceAllStringFunc(strings.TrimSuffix(string(f.Data), "\\\n"), func(s string) string {
			m := repeated.FindStringSubmatch(s)
			n, _ := strconv.Atoi(m[1])
			return strings.Repeat(m[2], n)
		})
		all = append(all, opening{f.Name, format, text})
	}
	if len(all) < 40 {
		t.Fatalf("%d openings, want 40 or more", len(all))
	}
	return all
}

const note = "nothing of note"

// A comparison keeps a checksum of output. If exact is set, the checksum covers all bytes.
// Otherwise it covers only lines that contain the constant note. Such lines belong to no report or
// profile, so they are printed whatever the format is.
type comparison struct {
	exact bool
	sum   hash.Hash
	size  int64
	rest  []byte
}

func (c *comparison) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	if c.exact {
		return c.sum.Write(p)
	}
	c.rest = append(c.rest, p...)
	for {
		line, rest, ok := bytes.Cut(c.rest, []byte("\n"))
		if !ok {
			c.rest = append(c.rest[:0], c.rest...)
			return len(p), nil
		}
		if c.rest = rest; bytes.Contains(line, []byte(note)) {
			c.sum.Write(append(bytes.TrimSpace(line), '\n'))
		}
	}
}

// For each opening, from a pipe, in a file or followed, output must begin before the input
// continues. The whole input must be printed, and the process must stay below 32 MiB. Some openings
// are followed by 1 MiB; with TEST_LONG=1, each is followed by 200 MB.
func TestOpeningsHoldNothingBack(t *testing.T) {
	const maxPeak = 32 << 20 // bytes resident, the Go runtime and buffers included
	size := 1 << 20
	if long() {
		size = 200e6
	}
	var block bytes.Buffer
	for i := 0; block.Len() < 64<<10; i++ {
		fmt.Fprintf(&block, "line %d: %s\n", i, note)
	}
	for i, o := range openings(t) {
		for k, kind := range []string{"pipe", "file", "follow"} {
			if !long() && (i+k)%3 != 0 {
				continue
			}
			t.Run(o.name+", "+kind, func(t *testing.T) {
				exact := o.format == "markup" || o.format == "docker" || o.format == "cri"
				want := &comparison{exact: exact, sum: sha256.New()}
				begin := o.text
				for len(begin) < min(strings.IndexByte(o.text+"\n", '\n'), 1<<20)+8<<10 || kind == "follow" && begin[len(begin)-1] != '\n' {
					begin += fmt.Sprintf("a line, %s\n", note)
				}
				io.WriteString(want, begin)
				blocks := size/block.Len() + 1
				for range blocks {
					want.Write(block.Bytes())
				}

				path := filepath.Join(t.TempDir(), "log")
				if err := os.WriteFile(path, []byte(begin), 0o600); err != nil {
					t.Fatal(err)
				}
				file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				fill := func(w io.Writer) {
					for range blocks {
						if _, err := w.Write(block.Bytes()); err != nil {
							return // the process has ended: the comparison fails
						}
					}
				}

				var p *pipeline
				switch kind {
				case "pipe":
					p = start(t)
					go io.WriteString(p.in, begin)
				// symfilter also reads standard input, which stays open, so that its memory can be
				// measured
				case "file":
					fill(file)
					p = start(t, path, "-")
				case "follow":
					p = start(t, "--follow", path)
				}
				p.out.SetReadDeadline(time.Now().Add(time.Minute)) // in case the command hangs
				out := bufio.NewReaderSize(p.out, 1<<20)
				if _, err := out.Peek(1); err != nil {
					t.Fatalf("nothing comes out of %d bytes: %v\n%s", len(begin), err, p.stderr.Bytes())
				}
				switch kind {
				case "pipe":
					go fill(p.in)
				case "follow":
					go fill(file)
				}
				got := &comparison{exact: exact, sum: sha256.New()}
				last := bytes.TrimSuffix(block.Bytes()[bytes.LastIndexByte(block.Bytes()[:block.Len()-1], '\n')+1:], []byte("\n"))
				for n := 0; n < blocks; {
					p.out.SetReadDeadline(time.Now().Add(time.Minute))
					line, err := out.ReadSlice('\n')
					got.Write(line)
					if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
						t.Fatalf("%v after %d bytes and %d blocks of %d\n%s", err, got.size, n, blocks, p.stderr.Bytes())
					}
					if bytes.HasSuffix(bytes.TrimSpace(line), last) {
						n++
					}
				}
				if peak := p.peak(t); peak > maxPeak {
					t.Errorf("%d MiB resident, want at most %d", peak>>20, maxPeak>>20)
				}
				if kind == "follow" {
					p.cmd.Process.Signal(syscall.SIGTERM)
				} else {
					p.in.Close()
				}
				io.Copy(got, out)
				if !bytes.Equal(got.sum.Sum(nil), want.sum.Sum(nil)) {
					t.Errorf("other bytes came out: %d of %d", got.size, want.size)
				}
			})
		}
	}
}

// While an input of unknown format is silent, a follower prints the start of the input. The
// checkpoint must cover this output: after SIGTERM, or after SIGKILL once the checkpoint is
// written, the next run must print only new lines.
func TestWhatSilencePrintsIsPrintedOnce(t *testing.T) {
	const begin, middle, end = "<?xml version=\"1.0\"?>\n", "# more\n", "the end\n"
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			path, state := filepath.Join(dir, "log"), filepath.Join(dir, "state")
			got := ""
			for i, s := range []string{begin, middle, end} {
				appendTo(t, path, s)
				p := start(t, "--follow", "--state", state, path)
				p.out.SetReadDeadline(time.Now().Add(time.Minute)) // in case the command hangs
				b := make([]byte, len(s))
				n, err := io.ReadFull(p.out, b)
				if got += string(b[:n]); err != nil {
					t.Fatalf("%q, then %v\n%s", got, err, p.stderr.Bytes())
				}
				if sig == syscall.SIGKILL {
					until(t, fmt.Sprintf("checkpoint %d says that the format is known", i), func() bool {
						saved, _ := os.ReadFile(state)
						return bytes.Contains(saved, []byte(`\"input\":\"markup\"`))
					})
					until(t, "the checkpoint says that all was printed", func() bool { return saved(t, state, path) })
				}
				p.cmd.Process.Signal(sig)
				rest, _ := io.ReadAll(p.out)
				got += string(rest)
				p.cmd.Wait()
			}
			if got != begin+middle+end {
				t.Errorf("got %q, want %q", got, begin+middle+end)
			}
		})
	}
}

// A first line alone must not decide the format. The log must be printed unchanged whether it is a
// named file, comes from a pipe, or is followed.
func TestALogThatBeginsAsAProfileComesOut(t *testing.T) {
	log := "# callgrind format\n" + strings.Repeat("an ordinary line\n", 100_000)
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(t, nil, command, path); got != log {
		t.Errorf("by name: %s", firstDifference([]byte(got), []byte(log)))
	}
	if got := run(t, []byte(log), command); got != log {
		t.Errorf("by pipe: %s", firstDifference([]byte(got), []byte(log)))
	}
	p := start(t, "--follow", path)
	p.out.SetReadDeadline(time.Now().Add(time.Minute)) // in case the command hangs
	got := make([]byte, len(log))
	if n, err := io.ReadFull(p.out, got); err != nil || string(got) != log {
		t.Errorf("followed: %v, %s", err, firstDifference(got[:n], []byte(log)))
	}
}
