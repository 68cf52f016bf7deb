package follow

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

func unpackGzip(r io.Reader) (io.Reader, func(), error) {
	z, err := gzip.NewReader(r)
	return z, func() {}, err
}

func gzipped(t *testing.T, contents string) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, contents); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// compress replaces a file by path.gz, like gzip. Unless keepsTime is set, the new file has the
// time of its compression.
func compress(t *testing.T, path string, keepsTime bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".gz", gzipped(t, string(text)), 0o666); err != nil {
		t.Fatal(err)
	}
	if keepsTime {
		if err := os.Chtimes(path+".gz", time.Time{}, info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// shift renames app.log.1 to app.log.2 and so on, with or without .gz, up to number most, and then
// path to app.log.1.
func shift(t *testing.T, path string, most int) {
	t.Helper()
	shiftRotated(path, most)
	rename(t, path, path+".1")
}

func shiftRotated(path string, most int) {
	for i := most; i > 0; i-- {
		for _, end := range []string{"", ".gz"} {
			os.Rename(fmt.Sprintf("%s.%d%s", path, i, end), fmt.Sprintf("%s.%d%s", path, i+1, end))
		}
	}
}

// A day writes and rotates a log while it is not read.
type day struct {
	t         *testing.T
	path      string
	keepsTime bool
	dated     int // number of rotations with a date in the name
	all       strings.Builder
	lines     int
}

func (d *day) write(n int) {
	d.t.Helper()
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "line %d of %s\n", d.lines, strings.Repeat("some text ", d.lines%5))
		d.lines++
	}
	d.all.WriteString(b.String())
	write(d.t, d.path, b.String())
}

// rotate renames the file by a number, and compresses it. If delayed is set, it compresses the file
// of the previous rotation instead.
func (d *day) rotate(delayed bool) {
	d.t.Helper()
	shift(d.t, d.path, 60)
	n := 1
	if delayed {
		n = 2
	}
	if path := fmt.Sprintf("%s.%d", d.path, n); exists(path) {
		compress(d.t, path, d.keepsTime)
	}
}

// rotateDated renames the file by a date, and compresses it.
func (d *day) rotateDated() {
	d.t.Helper()
	d.dated++
	path := fmt.Sprintf("%s-202611%02d", d.path, d.dated)
	rename(d.t, d.path, path)
	compress(d.t, path, d.keepsTime)
}

// copyTruncate copies the file to .1, truncates it, and compresses the copy.
func (d *day) copyTruncate() {
	d.t.Helper()
	shiftRotated(d.path, 60)
	copyTruncate(d.t, d.path, d.path+".1")
	compress(d.t, d.path+".1", d.keepsTime)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// days are ways in which a log is rotated and compressed while it is not read.
var days = map[string]func(d *day){
	"once":             func(d *day) { d.write(10); d.rotate(false); d.write(3) },
	"once, at its end": func(d *day) { d.rotate(false); d.write(3) },
	"three times": func(d *day) {
		d.write(10)
		d.rotate(false)
		d.write(5)
		d.rotate(false)
		d.write(7)
		d.rotate(false)
		d.write(3)
	},
	"twelve times": func(d *day) {
		for range 12 {
			d.write(10)
			d.rotate(false)
		}
		d.write(1)
	},
	"with a delay": func(d *day) {
		d.write(10)
		d.rotate(true)
		d.write(5)
		d.rotate(true)
		d.write(7)
		d.rotate(true)
		d.write(3)
	},
	"without a new one": func(d *day) { d.write(10); d.rotate(false); d.write(4); d.rotate(false) },
	"by dates":          func(d *day) { d.write(10); d.rotateDated(); d.write(10); d.rotateDated(); d.write(2) },
	"copied":            func(d *day) { d.write(10); d.copyTruncate(); d.write(3) },
	"copied twice":      func(d *day) { d.write(10); d.copyTruncate(); d.write(4); d.copyTruncate(); d.write(3) },
	"empty":             func(d *day) { d.rotate(false); write(d.t, d.path, ""); d.rotate(false); d.write(3) },
	"larger files":      func(d *day) { d.write(20000); d.rotate(false); d.write(20000); d.rotate(false); d.write(3) },
}

func TestCompressedFilesAreReadOn(t *testing.T) {
	for name, happens := range days {
		for _, keepsTime := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/keepsTime=%v", name, keepsTime), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				d := &day{t: t, path: filepath.Join(dir, "app.log"), keepsTime: keepsTime}
				o := Options{Names: []string{d.path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip}
				l := newLog()
				write(t, d.path, "before the first run\n")
				shift(t, d.path, 0)
				compress(t, d.path+".1", keepsTime)
				for range 3 {
					d.write(10)
					again(t, l, o, d.path, d.all.String())
					happens(d)
					again(t, l, o, d.path, d.all.String())
					if !exists(d.path) {
						write(t, d.path, "")
					}
				}
				again(t, l, o, d.path, d.all.String())
				l.expectMessages(t, "")
			})
		}
	}
}

func TestCompressedFilesBetweenTwoLooksAreRead(t *testing.T) {
	for name, happens := range days {
		for _, keepsTime := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/keepsTime=%v", name, keepsTime), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				d := &day{t: t, path: filepath.Join(dir, "app.log"), keepsTime: keepsTime}
				l := newLog()
				write(t, d.path, "before the first run\n")
				shift(t, d.path, 0)
				d.write(10)
				r := begin(t, l, Options{Names: []string{d.path}, Unpack: unpackGzip, Poll: true, Interval: time.Hour})
				r.looking(func() { r.expect(d.path, d.all.String()) })
				compress(t, d.path+".1", keepsTime)
				for range 3 {
					happens(d)
					if !exists(d.path) {
						d.write(1)
					}
					r.looking(func() { r.expect(d.path, d.all.String()) })
				}
				if err := r.end(); err != nil {
					t.Error(err)
				}
				r.expect(d.path, d.all.String())
				l.expectMessages(t, "")
			})
		}
	}
}

// expectMessages compares the messages with want. If want is empty, messages about truncations are
// allowed, since copyTruncate causes them.
func (l *log) expectMessages(t *testing.T, want string) {
	t.Helper()
	got := l.messages()
	if copied := regexp.MustCompile(`app.log: was truncated, .*\n?`); want == "" { // from copyTruncate
		got = copied.ReplaceAllString(got, "")
	}
	if got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
}

func TestCheckpointsWithinCompressedFiles(t *testing.T) {
	for name, happens := range map[string]func(t *testing.T, d *day){
		"as it is": func(*testing.T, *day) {},
		"renamed":  func(t *testing.T, d *day) { d.write(3); d.rotate(false); d.write(3) },
		"compressed again": func(t *testing.T, d *day) {
			b, _ := os.ReadFile(d.path + ".1.gz")
			z, _, _ := unpackGzip(bytes.NewReader(b))
			text, _ := io.ReadAll(z)
			os.Remove(d.path + ".1.gz")
			os.WriteFile(d.path+".1.bz2", gzipped(t, string(text)), 0o666)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := &day{t: t, path: filepath.Join(dir, "app.log"), keepsTime: true}
			o := Options{Names: []string{d.path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip}
			l := newLog()
			d.write(10)
			again(t, l, o, d.path, d.all.String())
			d.write(40000)
			d.rotate(false)
			d.write(10)
			for stop := true; stop; {
				stop = false
				enough := errors.New("enough")
				p := o
				p.Open = func(name string) (*Sink, error) {
					sink, err := l.open(name)
					sink.WriteCloser = &limited{sink.WriteCloser, 2, enough}
					return sink, err
				}
				r := begin(t, l, p)
				r.until("the sink has enough, or all is read", func() bool {
					select {
					case err := <-r.done:
						stop = errors.Is(err, enough)
						r.done <- err
						return true
					default:
						return l.text(d.path) == d.all.String()
					}
				})
				r.end()
				happens(t, d)
				happens = func(*testing.T, *day) {}
			}
			again(t, l, o, d.path, d.all.String())
			l.expectMessages(t, "")
		})
	}
}

// A limited writer fails after some writes.
type limited struct {
	io.WriteCloser
	left int
	err  error
}

func (w *limited) Write(p []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, w.err
	}
	return w.WriteCloser.Write(p)
}

// If the file records the size of its contents, the reported number of lost bytes must be exact.
func TestLossesOfCompressedFilesAreTold(t *testing.T) {
	first := strings.Repeat("a line that is read before\n", 3000) // more than a block
	rest := strings.Repeat("the rest of the file is what it is\n", 30000)
	// gzip: a file header, then blocks of stored data, each with a header and at most block bytes
	const header, blockHeader, block = 10, 5, 65535
	damaged := func(b []byte, at int) []byte { b[header+at/block*(blockHeader+block)+1] ^= 1; return b }
	last := "\nthe last line\n"
	for name, test := range map[string]struct {
		packed func(b []byte) []byte
		suffix string
		lost   int64 // -1: read and lost bytes together must be the rest
		told   string
	}{
		"whole":                    {func(b []byte) []byte { return b }, ".gz", 0, ""},
		"the checksum is wrong":    {func(b []byte) []byte { b[len(b)-5] ^= 1; return b }, ".gz", 0, `app.log: app.log.1.gz is damaged \(gzip: invalid checksum\): all of its \d+ bytes are read, but some of them may be wrong`},
		"damaged in the middle":    {func(b []byte) []byte { return damaged(b, len(b)/2) }, ".gz", -1, `app.log: app.log.1.gz is damaged after \d+ bytes of its contents \(.*\): the other \d+ bytes are lost`},
		"damaged before the place": {func(b []byte) []byte { return damaged(b, len(first)) }, ".gz", int64(len(rest)), `app.log: the file that was read up to byte 81000 is in app.log.1.gz, which is damaged after \d+ bytes of its contents; its last 1050000 bytes are lost`},
		"cut off":                  {func(b []byte) []byte { return b[:len(b)/2] }, ".gz", 0, `app.log: app.log.1.gz is damaged after \d+ bytes of its contents \(.*\): the rest is lost`},
		"cut off after a line":     {func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)/2], '\n')+1] }, ".gz", 0, `app.log: app.log.1.gz is damaged after \d+ bytes of its contents \(.*\): the rest is lost`},
		"cut off before the place": {func(b []byte) []byte { return b[:len(first)/2] }, ".gz", 0, `app.log: the file that was read up to byte 81000 is in app.log.1.gz, which is damaged after \d+ bytes of its contents; lines written since .* are lost`},
		"in a format that is new":  {func(b []byte) []byte { return append([]byte("LZIP\x01"), b...) }, ".lz4", 0, `app.log: the file that was read up to byte 81000 is gone, and app.log.1.lz4 is in a format that cannot be unpacked; lines written since .* are lost`},
		"gone":                     {nil, "", 0, `app.log: the file that was read up to byte 81000 is gone; lines written since .* are lost`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip}
			write(t, path, first)
			hour := time.Now().Add(-time.Hour)
			if err := os.Chtimes(path, hour, hour); err != nil {
				t.Fatal(err)
			}
			again(t, newLog(), o, path, first)
			rename(t, path, filepath.Join(dir, "keeps-its-inode"))
			if test.packed != nil {
				b := test.packed(gzipped(t, first+rest))
				if err := os.WriteFile(path+".1"+test.suffix, b, 0o666); err != nil {
					t.Fatal(err)
				}
				half := time.Now().Add(-time.Hour / 2) // older than linger: no process is still writing it
				if err := os.Chtimes(path+".1"+test.suffix, half, half); err != nil {
					t.Fatal(err)
				}
			}
			write(t, path, last)
			r := begin(t, newLog(), o)
			r.until("the last line is read", func() bool { return strings.HasSuffix(r.text(path), last) })
			stats := r.f.Stats()
			if err := r.end(); err != nil {
				t.Error(err)
			}
			if test.told == "" {
				r.expectMessages()
			} else {
				r.expectMessages(test.told)
			}
			read := strings.TrimSuffix(r.text(path), last)
			if !strings.HasPrefix(rest, strings.TrimSuffix(read, "\n")) {
				t.Errorf("read %.200q", read)
			}
			switch {
			case test.lost >= 0 && stats.LostBytes != test.lost:
				t.Errorf("%d bytes are lost, want %d", stats.LostBytes, test.lost)
			case test.lost < 0 && (stats.LostBytes <= 0 || int64(len(read))+stats.LostBytes < int64(len(rest)) || int64(len(read))+stats.LostBytes > int64(len(rest))+1):
				t.Errorf("%d bytes are read, and %d lost, of %d", len(read), stats.LostBytes, len(rest))
			}
		})
	}
}

func TestBytesThatWereSeenAreCountedAsLost(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip}
	write(t, path, "first\nunfinished")
	r := begin(t, newLog(), o)
	r.expect(path, "first\n")
	r.until("the unfinished line was seen", func() bool {
		return r.f.Stats() == Stats{Files: 1, ReadBytes: 6, LagBytes: 10, Checkpoints: r.f.Stats().Checkpoints}
	})
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	rename(t, path, filepath.Join(dir, "keeps-its-inode"))
	write(t, path, "second\n")
	r = begin(t, newLog(), o)
	r.expect(path, "second\n")
	r.expectMessages(`app.log: the file that was read up to byte 6 is gone; lines written since .* are lost, at least 10 bytes`)
	if lost := r.f.Stats().LostBytes; lost != 10 {
		t.Errorf("%d bytes are lost, want 10", lost)
	}
}

func TestBombsAreBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	for name, line := range map[string]string{"lines": strings.Repeat("x", 1023) + "\n", "no line": strings.Repeat("x", 1024)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			var read int64
			o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Unpack: func(io.Reader) (io.Reader, func(), error) {
				return io.MultiReader(strings.NewReader("first\n"), endless(line)), func() {}, nil
			}}
			l := newLog()
			write(t, path, "first\n")
			again(t, l, o, path, "first\n")
			compress(t, path, false)
			rename(t, path+".gz", path+".1.gz")
			write(t, path, "last\n")
			o.Open = func(string) (*Sink, error) {
				return &Sink{WriteCloser: byteCount{&read}}, nil
			}
			r := begin(t, l, o)
			const most = unpackFloor + 1<<20
			r.expectMessages(`app.log: app.log.1.gz unpacks to more than \d+ bytes, over 1100 times its size, which no log does: the rest is left out`)
			r.until("the next file is read", func() bool { return r.f.Stats().LagBytes == 0 })
			if err := r.end(); err != nil {
				t.Error(err)
			}
			if read < unpackFloor || read > most {
				t.Errorf("%d bytes are read, want %d to %d", read, unpackFloor, most)
			}
		})
	}
}

// An endless is a reader that repeats its text forever.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for len(p)-n >= len(e) {
		n += copy(p[n:], e)
	}
	return n, nil
}

type byteCount struct{ n *int64 }

func (c byteCount) Write(p []byte) (int, error) { *c.n += int64(len(p)); return len(p), nil }
func (c byteCount) Close() error                { return nil }

func TestUnpackingIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip}
	l := newLog()
	first := strings.Repeat("a line that is read before\n", 30000)
	write(t, path, first)
	again(t, l, o, path, first)
	write(t, path, "second\n")
	compress(t, path, true)
	rename(t, path+".gz", path+".1.gz")
	write(t, path, "third\n")
	waits := make(chan bool)
	var once sync.Once
	p := o
	p.Unpack = func(r io.Reader) (io.Reader, func(), error) {
		once.Do(func() { close(waits) })
		for { // the decoder reads on without a result
			if _, err := r.Read(make([]byte, 1)); err != nil && err != io.EOF {
				return nil, nil, err
			}
		}
	}
	r := begin(t, l, p)
	<-waits
	if err := r.end(); err != nil {
		t.Error(err)
	}
	again(t, l, o, path, first+"second\nthird\n")
	l.expectMessages(t, "")
}

// The archive of a file that was read must not be taken for a copy of the current file, which is
// empty at first. The inode of the archived file is reused by a file of another log.
func TestReadArchivesAreNoCopies(t *testing.T) {
	for _, keepsTime := range []bool{true, false} {
		t.Run(fmt.Sprintf("keepsTime=%v", keepsTime), func(t *testing.T) {
			dir := t.TempDir()
			d := &day{t: t, path: filepath.Join(dir, "app.log"), keepsTime: keepsTime}
			o := Options{Names: []string{d.path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip}
			l := newLog()
			d.write(10)
			again(t, l, o, d.path, d.all.String())
			d.write(10)
			shift(t, d.path, 60)
			write(t, d.path, "")
			killed(t, l, o, d.path, d.all.String())
			inode, _, err := lookAt(d.path + ".1")
			if err != nil {
				t.Fatal(err)
			}
			compress(t, d.path+".1", keepsTime)
			r := begin(t, l, o, func(f *Follower) {
				f.newSource("other.log", filepath.Join(dir, "other.log")).search.lineage.Claim(&generation{handle: &handle{id: inode}})
			})
			r.untilCheckpoint(o.State)
			d.write(10)
			r.expect(d.path, d.all.String())
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			again(t, l, o, d.path, d.all.String())
			l.expectMessages(t, "")
		})
	}
}

// killed runs a Follower until it has printed want. Then it restores the last checkpoint before the
// end, as after a kill.
func killed(t *testing.T, l *log, o Options, name, want string) {
	t.Helper()
	r := begin(t, l, o)
	r.expect(name, want)
	state := r.untilCheckpoint(o.State)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.State, state, 0o600); err != nil {
		t.Fatal(err)
	}
}

// untilCheckpoint waits until a checkpoint covers all output, and returns the content of its file.
func (r *running) untilCheckpoint(path string) (state []byte) {
	r.t.Helper()
	before, _ := os.ReadFile(path)
	r.until("all that was printed is in the checkpoint", func() bool {
		state, _ = os.ReadFile(path)
		last := state[bytes.LastIndexByte(bytes.TrimSuffix(state, []byte("\n")), '\n')+1:]
		return !bytes.Equal(state, before) && !bytes.Contains(last, []byte(`"size":`))
	})
	return state
}
