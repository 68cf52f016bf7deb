package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestLinesAreWhole(t *testing.T) {
	const line = "frame {{{bt:0:0x1234:ra}}} of thread \x00\xff 7\r\n"
	path := filepath.Join(t.TempDir(), "app.log")
	for cut := 1; cut < len(line); cut++ {
		if err := os.WriteFile(path, []byte(line[:cut]), 0o666); err != nil {
			t.Fatal(err)
		}
		var got string
		_, read := generationOf(t, path, &got)
		if err := read(); err != nil || got != "" {
			t.Fatalf("cut at %d: got %q, %v; want nothing yet", cut, got, err)
		}
		write(t, path, line[cut:])
		if err := read(); err != nil || got != line {
			t.Fatalf("cut at %d: got %q, %v; want %q", cut, got, err, line)
		}
	}
}

// At the end of a run, an unfinished last line must get a line end only if lines of other files may
// follow. With a checkpoint, the line must be left to the next run.
func TestUnfinishedLinesAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.log"), filepath.Join(dir, "two.log")
	write(t, one, "1\nunfinished")
	write(t, two, "2\n")
	for _, test := range []struct {
		names []string
		state string
		want  string
	}{
		{[]string{one}, "", "1\nunfinished"},
		{[]string{one, two}, "", "1\nunfinished\n"},
		{[]string{one}, filepath.Join(dir, "state"), "1\n"},
	} {
		r := begin(t, newLog(), Options{Names: test.names, State: test.state})
		for _, name := range test.names {
			r.until("the first line of "+name, func() bool { return r.text(name) != "" })
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if got := r.text(one); got != test.want {
			t.Errorf("%d names, checkpoint %q: got %q, want %q", len(test.names), test.state, got, test.want)
		}
	}
}

// A counter counts the bytes and lines that it gets.
type counter struct {
	bytes, lines int64
	other        bool // a byte other than x and the line end was written
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	c.lines += int64(bytes.Count(p, []byte{'\n'}))
	c.other = c.other || len(bytes.Trim(p, "x\n")) > 0
	return len(p), nil
}

func (*counter) Close() error { return nil }

func TestLongLinesTakeNoMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	size := int64(64 << 20)
	if long() {
		size = 2 << 30
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := bytes.Repeat([]byte("x"), 1<<20)
	for at := int64(0); at < size; at += int64(len(block)) {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	g, err := newDisk(nil).openGeneration(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var c counter
	emit := func(p []byte, _ bool) error { _, err := c.Write(p); return err }
	buf := make([]byte, readSize)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read := func() {
		for more := true; more; {
			if more, err = g.lines(t.Context(), buf, emit); err != nil {
				t.Fatal(err)
			}
		}
	}
	read()
	if c.bytes != 0 || !g.unfinished() {
		t.Errorf("%d bytes of a line without an end are printed", c.bytes)
	}
	io.WriteString(f, "\nx\nxx")
	read()
	if c.bytes != size+3 || c.lines != 2 || c.other {
		t.Errorf("got %d bytes, %d lines, others %v; want %d bytes of 2 lines", c.bytes, c.lines, c.other, size+3)
	}
	runtime.ReadMemStats(&after)
	// thousands of reads produce some garbage
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 && !long() {
		t.Errorf("took %d bytes of memory", n)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := int64(after.HeapAlloc) - int64(before.HeapAlloc); n > 1<<20 {
		t.Errorf("%d bytes of memory are held", n)
	}
}

// If the file is truncated within a long line, the printed part of the line must get a line end.
func TestLongLinesEndWhereTheirFileDoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, strings.Repeat("x", 2*readSize)+"\n")
	g, err := newDisk(nil).openGeneration(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var got []byte
	buf := make([]byte, readSize)
	for more := true; more && err == nil; {
		more, err = g.lines(t.Context(), buf, func(p []byte, _ bool) error {
			if got == nil {
				truncate(t, path)
			}
			got = append(got, p...)
			return nil
		})
	}
	if want := strings.Repeat("x", readSize) + "\n"; string(got) != want || !errors.Is(err, errTruncated) {
		t.Errorf("got %d bytes and %v, want %d and %v", len(got), err, len(want), errTruncated)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.lines(ctx, buf, nil); err == nil {
		t.Error("no error of what was truncated")
	}
}

// Lines of UTF-16 must be printed whole. The bytes of a line end also occur in other characters,
// such as U+4E0A.
func TestLinesOfUTF16AreWhole(t *testing.T) {
	for _, parts := range [][]string{
		{"\xff\xfea\x00\n\x00|", "\x0a\x4e\n", "\x00|", "c\x00\n\x00|", "d\x00"}, // U+4E0A
		{"\xfe\xff\x00a\x00\n|", "\x0a\x4e\x00", "\n|", "\x00c\x00\n|", "\x00d"},
		{"\xff\xfeA\x00", "a short line\n", strings.Repeat("a line of UTF-8\n", 5) + "|", "no end"},
		{"\xff\xfe\x00\x00\n|", "\x00\x00\x00"}, // in UTF-32, the byte 0x0A alone ends a line
	} {
		path := filepath.Join(t.TempDir(), "app.log")
		write(t, path, "")
		var got string
		g, read := generationOf(t, path, &got)
		all, whole := "", ""
		for _, part := range parts {
			bytes, ended := strings.CutSuffix(part, "|")
			write(t, path, bytes)
			if all += bytes; ended {
				whole = all
			}
			if err := read(); err != nil {
				t.Fatal(err)
			}
			if got != whole {
				t.Errorf("after %q: got %q, want %q", all, got, whole)
			}
		}
		end := string(g.newline())
		if err := g.endLine(t.Context(), make([]byte, readSize), true, func(p []byte, _ bool) error {
			got += string(p)
			return nil
		}); err != nil || got != all+end {
			t.Errorf("at the end: got %q, %v; want %q", got, err, all+end)
		}
	}
}

func TestBytesOfCompressedFilesAreEmittedAtOnce(t *testing.T) {
	for _, magic := range []string{"\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\xfd7zXZ\x00", "BZh91AY&SY"} {
		path := filepath.Join(t.TempDir(), "app.log.gz")
		write(t, path, "")
		var got string
		g, read := generationOf(t, path, &got)
		all := ""
		for _, part := range []string{magic + "one", "two\nthree", "\n"} {
			write(t, path, part)
			all += part
			if err := read(); err != nil {
				t.Fatal(err)
			}
			if got != all {
				t.Errorf("got %q, want %q", got, all)
			}
		}
		if err := g.endLine(t.Context(), make([]byte, readSize), true, func(p []byte, _ bool) error {
			got += string(p)
			return nil
		}); err != nil || got != all {
			t.Errorf("at the end: got %q, %v; want %q", got, err, all)
		}
	}
}

func TestOtherFilesHoldLinesWhateverTheyBeginWith(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "\x1f\x8b\x08one\ntwo")
	var got string
	g, read := generationOf(t, path, &got)
	if err := read(); err != nil || got != "\x1f\x8b\x08one\n" || g.needsBeginning() {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzLines writes a file in parts, and reads it in between. All whole lines must be printed
// unchanged, and the rest at the end.
func FuzzLines(f *testing.F) {
	f.Add([]byte("one\ntwo\r\nthree"), uint16(1), uint16(3))
	f.Add([]byte("x\x00\xff\n\n\n"), uint16(40000), uint16(9999))
	f.Add([]byte(strings.Repeat("y", 1000)+"\n"), uint16(0), uint16(5))
	f.Add(bytes.Repeat([]byte("z"), 70000), uint16(7), uint16(60001))
	f.Add([]byte("\xff\xfea\x00\n\x00b\x00\n\x00\n"), uint16(3), uint16(3))
	f.Add([]byte("\xfe\xff\x00a\x00\n\x00b\n\x00"), uint16(3), uint16(5))
	f.Add([]byte("\xff\xfea\xfe\n"), uint16(3), uint16(0)) // not UTF-16, as 64 bytes show
	f.Fuzz(func(t *testing.T, data []byte, times, step uint16) {
		defer fuzztest.Watch(t, []any{data, times, step})()
		all := data
		for n := 0; n < int(times)%8 && len(all) < 1<<20; n++ {
			all = append(append(bytes.Clone(all), data...), all...)
		}
		path := filepath.Join(t.TempDir(), "app.log")
		write(t, path, "")
		var got string
		g, read := generationOf(t, path, &got)
		for rest := all; len(rest) > 0; {
			n := min(len(rest), max(int(step), len(all)/50+1))
			write(t, path, string(rest[:n]))
			rest = rest[n:]
			if err := read(); err != nil {
				t.Fatal(err)
			}
			read := all[:len(all)-len(rest)]
			if want := read[:g.lastEnd(read)]; got != string(want) {
				t.Fatalf("after %d bytes: got %d, want %d", len(read), len(got), len(want))
			}
		}
		if err := g.endLine(t.Context(), make([]byte, readSize), false, func(p []byte, _ bool) error {
			got += string(p)
			return nil
		}); err != nil || got != string(all) {
			t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(all))
		}
	})
}

func TestFilesTakeTurns(t *testing.T) {
	dir := t.TempDir()
	big, small := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	write(t, big, strings.Repeat(strings.Repeat("x", 99)+"\n", 1<<20/100*64))
	write(t, small, "one\n")
	l := newLog()
	var read, atSmall int64
	open := func(name string) (*Sink, error) {
		return &Sink{WriteCloser: writerFunc(func(p []byte) (int, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if name == big {
				read += int64(len(p))
			} else {
				atSmall = read
			}
			return len(p), nil
		})}, nil
	}
	r := begin(t, l, Options{Names: []string{big, small}, Open: open, Workers: 1})
	r.until("all is read", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return read >= 64<<20-100*64 && atSmall > 0
	})
	if atSmall > 2*readSize {
		t.Errorf("the other file was read after %d bytes of the big one, want %d", atSmall, readSize)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
func (writerFunc) Close() error                  { return nil }

func TestErrorsOfSinksAreReturned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\n")
	broken := errors.New("broken")
	r := begin(t, newLog(), Options{Names: []string{path}, Open: func(string) (*Sink, error) {
		return &Sink{WriteCloser: writerFunc(func([]byte) (int, error) { return 0, broken })}, nil
	}})
	select {
	case err := <-r.done:
		if r.done <- err; err != broken {
			t.Errorf("got %v, want %v", err, broken)
		}
	case <-time.After(patience):
		t.Fatal("goes on")
	}
	r = begin(t, newLog(), Options{Names: []string{path}, Open: func(string) (*Sink, error) { return nil, fmt.Errorf("none: %w", broken) }})
	if err := <-r.done; !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	r.done <- nil
}
