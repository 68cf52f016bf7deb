package follow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// again starts a run with a checkpoint. It ends the run when this run and the earlier runs together
// have printed want.
func again(t *testing.T, l *log, o Options, name, want string) *running {
	t.Helper()
	r := begin(t, l, o)
	r.expect(name, want)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNextRunsGoOn(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		path := filepath.Join(dir, "app.log")
		o.Names, o.State = []string{path}, filepath.Join(dir, "state")
		l := newLog()
		write(t, path, "one\n")
		again(t, l, o, path, "one\n")
		write(t, path, "two\nunfin")
		again(t, l, o, path, "one\ntwo\n")
		again(t, l, o, path, "one\ntwo\n")
		write(t, path, "ished\n")
		again(t, l, o, path, "one\ntwo\nunfinished\n")
		rename(t, path, path+".1") // several rotations without a run
		write(t, path+".1", "three\n")
		write(t, path, "four\n")
		rename(t, path+".1", path+".2")
		rename(t, path, path+".1")
		write(t, path, "five\n")
		again(t, l, o, path, "one\ntwo\nunfinished\nthree\nfour\nfive\n")
		rename(t, path, path+".0") // the name is missing now
		again(t, l, o, path, "one\ntwo\nunfinished\nthree\nfour\nfive\n")
		write(t, path+".0", "six\n")
		again(t, l, o, path, "one\ntwo\nunfinished\nthree\nfour\nfive\nsix\n")
		write(t, path, "seven\n")
		again(t, l, o, path, "one\ntwo\nunfinished\nthree\nfour\nfive\nsix\nseven\n")
		if told := strings.TrimPrefix(l.messages(), "app.log: does not exist yet; waiting for it"); told != "" {
			t.Errorf("told %s", told)
		}
	})
}

func TestNextRunsFindAnotherFile(t *testing.T) {
	const first = "the first line\nthe second line\n"
	for name, test := range map[string]struct {
		change func(t *testing.T, path string)
		want   string
		told   string
	}{
		"truncated":           {func(t *testing.T, path string) { truncate(t, path); write(t, path, "new\n") }, "new\n", "app.log: no longer holds.*"},
		"truncated and grown": {func(t *testing.T, path string) { truncate(t, path); write(t, path, strings.Repeat("new\n", 100)) }, strings.Repeat("new\n", 100), "app.log: no longer holds.*"},
		"copied and truncated": {func(t *testing.T, path string) {
			write(t, path, "third\n")
			copyTruncate(t, path, path+".1")
			write(t, path, "new\n")
		}, "third\nnew\n", "app.log: no longer holds.*: the file was copied and truncated; reading continues in the copy"},
		"copied when it was read, and truncated": {func(t *testing.T, path string) {
			copyTruncate(t, path, path+".1")
			write(t, path, "new\n")
		}, "new\n", "app.log: no longer holds.*; reading continues in the copy"},
		"copied with times of whole seconds, and truncated": {func(t *testing.T, path string) {
			written, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			copyTruncate(t, path, path+".1")
			second := written.ModTime().Truncate(time.Second)
			if err := os.Chtimes(path+".1", second, second); err != nil {
				t.Fatal(err)
			}
			write(t, path, "new\n")
		}, "new\n", "app.log: no longer holds.*; reading continues in the copy"},
		"removed": {func(t *testing.T, path string) {
			os.Link(path, path+"-keeps-its-inode")
			os.Remove(path)
			os.Rename(path+"-keeps-its-inode", filepath.Join(filepath.Dir(path), "other"))
			write(t, path, "new\n")
		}, "new\n", "app.log: the file that was read up to byte 31 is gone; lines written since .* are lost"},
		"packed": {func(t *testing.T, path string) {
			os.Rename(path, path+".1.gz")
			write(t, path, "new\n")
		}, "new\n", "app.log: the file that was read up to byte 31 is gone; lines written since .* are lost"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			o := Options{Names: []string{path}, State: filepath.Join(dir, "state")}
			write(t, path, first)
			again(t, newLog(), o, path, first)
			test.change(t, path)
			again(t, newLog(), o, path, test.want).expectMessages(test.told)
		})
	}
}

// Files that had the followed name between two runs must be read at once, although no file has the
// name now.
func TestNextRunsReadWhatWasRotatedBeforeTheNameIsMissing(t *testing.T) {
	for name, rotate := range map[string]func(t *testing.T, path string){
		"renamed":    func(t *testing.T, path string) {},
		"compressed": func(t *testing.T, path string) { compress(t, path, false) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip}
			write(t, path, "one\n")
			again(t, newLog(), o, path, "one\n")
			rename(t, path, filepath.Join(dir, "keeps its inode"))
			write(t, path+".1", "two\n")
			rotate(t, path+".1")
			l := newLog()
			r := again(t, l, o, path, "two\n")
			r.expectMessages("app.log: the file that was read up to byte 4 is gone; lines written since .* are lost")
			write(t, path, "three\n")
			again(t, l, o, path, "two\nthree\n")
		})
	}
}

// An earlier run ended while no file had the followed name. The next run must read the files that
// have had the name since.
func TestNextRunsReadWhatCameAfterANameWasMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "app.log")
		o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Poll: true, Interval: time.Second}
		l := newLog()
		write(t, path, "one\n")
		r := begin(t, l, o)
		r.expect(path, "one\n")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * linger)
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		write(t, path+".1", "two\n")
		setTime(t, path+".1", time.Now().Add(-time.Hour))
		write(t, path, "three\n")
		r = begin(t, l, o)
		r.expect(path, "one\ntwo\nthree\n")
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// If the file of the checkpoint is missing for a moment, the next run must wait for it. An older
// file that was compressed has a newer time, but must not be read as its successor.
func TestNextRunsWaitForTheNameIfNothingIsNewer(t *testing.T) {
	dir := t.TempDir()
	path, away := filepath.Join(dir, "app.log"), filepath.Join(dir, "away")
	o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip}
	l := newLog()
	write(t, path, "one\n")
	r := begin(t, l, o)
	r.expect(path, "one\n")
	rename(t, path, path+".1")
	write(t, path, "two\n")
	r.expect(path, "one\ntwo\n")
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	compress(t, path+".1", false)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path+".1.gz", later, later); err != nil {
		t.Fatal(err)
	}
	rename(t, path, away)
	r = begin(t, l, o)
	r.until("it waits", func() bool { return l.messages() != "" })
	rename(t, away, path)
	write(t, path, "three\n")
	r.expect(path, "one\ntwo\nthree\n")
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	l.expectMessages(t, "app.log: does not exist yet; waiting for it")
}

// A checkpoint cannot identify a file without printed lines, since a later file may have the same
// inode. The next run must also read the file that was rotated before that later file.
func TestNextRunsReadWhatCameBeforeAnInodeWasUsedAgain(t *testing.T) {
	for name, first := range map[string]string{"empty": "", "unfinished": "unfin"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			o := Options{Names: []string{path}, State: filepath.Join(dir, "state")}
			write(t, path, first)
			r := begin(t, newLog(), o)
			r.until("its checkpoint", func() bool { return mustSize(o.State) > 0 })
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			rename(t, path, filepath.Join(dir, "kept")) // keeps the inode from being reused
			write(t, path+".1", "one\n")
			rename(t, filepath.Join(dir, "kept"), path)
			truncate(t, path)
			write(t, path, "two\n")
			again(t, newLog(), o, path, "one\ntwo\n")
		})
	}
}

// Without a usable checkpoint, reading begins at Options.Start.
func TestCheckpointsThatAreNotUsed(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "state")
	o := Options{Names: []string{path}, State: state}
	write(t, path, "one\n")
	again(t, newLog(), o, path, "one\n")
	// with returns a state file with one changed record.
	with := func(change func(c *record)) []byte {
		t.Helper()
		j, err := readState(state)
		if err != nil {
			t.Fatal(err)
		}
		j.Files = slices.Collect(maps.Values(j.files))
		change(&j.record)
		body, err := json.Marshal(j.record)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, "%s\n%s\n", stateHead(body), body)
	}
	good := with(func(*record) {})
	const torn = `the checkpoint .*state is not used: the file is cut off, or not a checkpoint; lines may be printed again`
	tests := map[string]struct {
		data []byte
		told string
	}{
		"empty": {nil, `the checkpoint .*state is not used: the file is empty: it was truncated, or a run ended before the first checkpoint; lines may be printed again`},
		"zeros": {make([]byte, len(good)), torn},
		"a bit": {bytes.Replace(good, []byte(`"off":4`), []byte(`"off":5`), 1), torn},
		"an entry of another form": {with(func(c *record) {
			c.Files[0] = regexp.MustCompile(`"reading":\[.*\]`).ReplaceAll(c.Files[0], []byte(`"reading":1`))
		}), `the checkpoint .*state has no readable entry for 1 file; the first is .*app.log; lines may be printed again`},
		"version": {with(func(c *record) { c.Version = 2 }), `the checkpoint .*state is not used: the file has version 2, not 1; lines may be printed again`},
	}
	if hostID() != "" {
		tests["another machine"] = struct {
			data []byte
			told string
		}{with(func(c *record) { c.Host = "another" }), `the checkpoint .*state is not used: the file was written on another machine; lines may be printed again`}
	}
	for n := 1; n < len(good)-1; n += 1 + len(good)/20 {
		tests[fmt.Sprintf("first %d bytes", n)] = struct {
			data []byte
			told string
		}{good[:n], torn}
	}
	for name, test := range tests {
		for _, start := range []Start{Beginning, End} {
			if err := os.WriteFile(state, test.data, 0o600); err != nil {
				t.Fatal(err)
			}
			o.Start = start
			l := newLog()
			r := begin(t, l, o)
			r.until("it is open", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.out[path] != nil })
			want := "one\n"
			if start == End {
				want = ""
			}
			r.expect(path, want)
			if err := r.end(); err != nil {
				t.Error(err)
			}
			if got := r.text(path); got != want {
				t.Errorf("%s, from the %v: got %q, want %q", name, start, got, want)
			}
			r.expectMessages(test.told)
			if now, err := os.ReadFile(state); err != nil || string(now[:len(stateMagic)]) != stateMagic {
				t.Errorf("%s: no checkpoint afterwards: %q, %v", name, now, err)
			}
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "app.log")
	if err := os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o666); err != nil {
		f.Fatal(err)
	}
	g, err := newDisk(nil).openGeneration(path)
	if err != nil {
		f.Fatal(err)
	}
	g.seek(4)
	m, _ := g.mark()
	g.Close()
	f.Add(m.Ino, m.Head, m.Len, m.Off, m.RecentHash, true, int64(0), "context")
	f.Add(m.Ino, m.Head, m.Len, m.Off, m.RecentHash, false, int64(8), "")
	f.Add(m.Ino, lineage.Hash(nil), 0, int64(0), lineage.Hash(nil), false, int64(-1), "")
	f.Add(m.Ino, lineage.Hash(nil), -1, int64(-5), lineage.Hash(nil), true, int64(1<<62), "\xff")
	f.Fuzz(func(t *testing.T, ino uint64, head string, n int, off int64, before string, replay bool, quiet int64, context string) {
		m := lineage.Mark{Dev: m.Dev, Ino: ino, Head: head, Len: n, Off: off, RecentHash: before}
		fl, err := New(Options{Names: []string{path}, Open: newLog().open})
		if err != nil {
			t.Fatal(err)
		}
		fl.watcher = newWatcher(nil, fl.notify)
		s := fl.sources[path]
		s.origin.saved = &savedSource{Path: path, Context: context, Reading: []savedReading{{Mark: m, Replay: replay, Quiet: quiet, Held: ino%2 == 0, Sink: n, Context: context}, {Mark: m, Replay: replay, Quiet: quiet}}, Read: []lineage.Mark{m, m}}
		buf := make([]byte, readSize)
		for range 10 {
			if more, err := s.turn(t.Context(), buf); err != nil {
				t.Fatal(err)
			} else if !more {
				break
			}
		}
		s.snapshot()
		s.close()
	})
}

// Without a valid context, the next sink must get the earlier lines again, as quiet lines.
func TestSinksGetTheirContextBack(t *testing.T) {
	for name, test := range map[string]struct {
		say        bool
		understand bool
		want       string // input of the second sink; quiet lines are in brackets
	}{
		"context":        {true, true, "<context of 8>three\n"},
		"not understood": {true, false, "[one\ntwo\n]three\n"},
		"none":           {false, true, "[one\ntwo\n]three\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			var got []string
			open := func(string) (*Sink, error) {
				i, n := len(got), 0
				got = append(got, "")
				return &Sink{
					WriteCloser: writerFunc(func(p []byte) (int, error) { got[i] += string(p); n += len(p); return len(p), nil }),
					Quiet: func(on bool) {
						if on {
							got[i] += "["
						} else {
							got[i] += "]"
						}
					},
					Context: func(dst []byte) ([]byte, bool) { return fmt.Appendf(dst, "context of %d", n), test.say },
					Restore: func(context []byte) error {
						if !test.understand {
							return errors.New("what?")
						}
						got[i] += "<" + string(context) + ">"
						return nil
					},
				}, nil
			}
			o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Open: open}
			l := newLog()
			run := func(text string) {
				t.Helper()
				write(t, path, text)
				r := begin(t, l, o)
				r.until("it is read", func() bool {
					j, err := readState(o.State)
					return err == nil && bytes.Contains(j.files[path], fmt.Appendf(nil, `"off":%d,`, mustSize(path)))
				})
				if err := r.end(); err != nil {
					t.Fatal(err)
				}
			}
			run("one\ntwo\n")
			run("three\n")
			if len(got) != 2 || got[0] != "one\ntwo\n" || got[1] != test.want {
				t.Errorf("got %q, want the second to be %q", got, test.want)
			}
		})
	}
}

func mustSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

func TestCheckpointsDoNotWaitForSinks(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	o := Options{Names: []string{a, b}, State: filepath.Join(dir, "state")}
	write(t, a, "a1\n")
	write(t, b, "b1\n")
	l := newLog()
	r := begin(t, l, o)
	r.expect(a, "a1\n")
	r.expect(b, "b1\n")
	r.end()

	write(t, a, "a2\n")
	g := newGate()
	held := newLog()
	o.Open = func(name string) (*Sink, error) {
		if name == a {
			return held.gated(g)(name)
		}
		return held.open(name)
	}
	r = begin(t, held, o)
	<-g.waiting
	write(t, b, "b2\n")
	r.expect(b, "b2\n")
	r.cancel()
	// The sink of the first file is blocked, and Run waits for this sink. A program calls Save
	// before it exits.
	r.until("b is saved", func() bool {
		r.f.Save()
		j, err := readState(o.State)
		return err == nil && bytes.Contains(j.files[b], []byte(`"off":6,`))
	})
	data, _ := os.ReadFile(o.State)
	g.open()
	r.end()
	if err := os.WriteFile(o.State, data, 0o600); err != nil { // restores the checkpoint, as after a kill
		t.Fatal(err)
	}
	o.Open = nil
	last := newLog()
	again(t, last, o, a, "a2\n")
	if got := last.text(b); got != "" {
		t.Errorf("%q came twice", got)
	}
}

func lastBoot() boot { return boot{bootTime(), bootID()} }

// readState reads a state file as if the machine was last started at starts[0]. Without starts, it
// uses the real start.
func readState(path string, starts ...boot) (journal, error) {
	f, err := os.Open(path)
	if err != nil {
		return journal{}, err
	}
	defer f.Close()
	return readJournal(f, append(starts, lastBoot())[0])
}

// The earlier lines of busy.log and of idle.log that are printed must depend on Options.Start: see
// want. busy.log.1 was last written a minute ago, busy.log.2 and idle.log an hour ago.
func TestStarts(t *testing.T) {
	for start, want := range map[Start][2]string{
		Beginning:              {"b3\n", "i1\ni2"},
		End:                    {"", "i2"},
		Start(time.Minute / 2): {"b3\n", "i2"},
		Start(time.Hour / 2):   {"b2\nb3\n", "i2"},
		Start(2 * time.Hour):   {"b1\nb2\nb3\n", "i1\ni2"},
	} {
		t.Run(start.String(), func(t *testing.T) {
			dir := t.TempDir()
			old := time.Now().Add(-time.Hour)
			file := func(name, text string, changed time.Time) string {
				path := filepath.Join(dir, name)
				write(t, path, text)
				if err := os.Chtimes(path, changed, changed); err != nil {
					t.Fatal(err)
				}
				return path
			}
			file("busy.log.2", "b1\n", old)
			file("busy.log.1", "b2\n", time.Now().Add(-time.Minute))
			busy := file("busy.log", "b3\n", time.Now())
			idle := file("idle.log", "i1\ni2", old)
			l := newLog()
			r := begin(t, l, Options{Names: []string{busy, idle}, Start: start, Open: func(name string) (*Sink, error) {
				sink, err := l.open(name)
				sink.Quiet = nil
				return sink, err
			}})
			r.until("both are open", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.out) == 2 })
			write(t, busy, "b4\n")
			write(t, idle, "\n")
			r.expect(busy, want[0]+"b4\n")
			r.expect(idle, want[1]+"\n")
		})
	}
}

func TestLinesBeforeTheEndAreQuiet(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	write(t, path, "one\ntwo\nunfin")
	var whole bytes.Buffer
	l := newLog()
	r := begin(t, l, Options{Names: []string{path}, Start: End, Open: func(name string) (*Sink, error) {
		sink, err := l.open(name)
		inner := sink.WriteCloser
		sink.WriteCloser = writerFunc(func(p []byte) (int, error) {
			l.mu.Lock()
			whole.Write(p)
			l.mu.Unlock()
			return inner.Write(p)
		})
		return sink, err
	}})
	r.until("they are read", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return whole.String() == "one\ntwo\n" })
	write(t, path, "ished\n")
	r.expect(path, "unfinished\n")
}

// If the sink needs no context from earlier lines, no more than about lookBack bytes before the end
// may be read.
func TestLittleIsReadBeforeTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "beginning\n")
	const size = lookBack + 64<<20
	if err := os.Truncate(path, size); err != nil { // a hole, since writing that many bytes takes too long
		t.Fatal(err)
	}
	write(t, path, "\nend\n")
	for _, knows := range []bool{true, false} {
		var quiet, loud int64
		l := newLog()
		r := begin(t, l, Options{Names: []string{path}, Start: End, Open: func(name string) (*Sink, error) {
			on := false
			return &Sink{
				WriteCloser: writerFunc(func(p []byte) (int, error) {
					l.mu.Lock()
					defer l.mu.Unlock()
					if on {
						quiet += int64(len(p))
					} else {
						loud += int64(len(p))
					}
					return len(p), nil
				}),
				Quiet:   func(q bool) { on = q },
				Context: func(dst []byte) ([]byte, bool) { return dst, knows },
			}, nil
		}})
		want := int64(size + len("beginning\n"))
		if knows {
			want = lookBack + 2*readSize
		}
		r.until("all is read", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return quiet > lookBack
		})
		write(t, path, "next\n")
		r.until("the next line", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return loud > 0 })
		r.end()
		if quiet > want || loud != int64(len("next\n")) || !knows && quiet < size {
			t.Errorf("%v: %d quiet bytes, %d others; want at most %d, and 5", knows, quiet, loud, want)
		}
	}
}

func TestParseStart(t *testing.T) {
	for s, want := range map[string]string{"beginning": "beginning", "end": "end", "90m": "1h30m0s"} {
		if got, err := ParseStart(s); err != nil || got.String() != want {
			t.Errorf("%s: got %v, %v; want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"", "begin", "-1h", "0s", "1"} {
		if got, err := ParseStart(s); err == nil {
			t.Errorf("%q: got %v, want an error", s, got)
		}
	}
}

// New must fail if another follower uses the state file. If the other follower is about to end, New
// must wait for it.
func TestStateFilesAreOfOneFollower(t *testing.T) {
	if !locks {
		t.Skip("no locks here")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	o := Options{Names: []string{path}, Open: newLog().open, State: filepath.Join(dir, "state")}
	write(t, path, "one\n")
	r := begin(t, newLog(), o)
	r.until("its checkpoint", func() bool { return mustSize(o.State) > 0 })
	if _, err := New(o); !errors.Is(err, errInUse) {
		t.Errorf("the second follower: %v", err)
	}
	go func() {
		time.Sleep(lockPause)
		r.cancel()
	}()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.saver.release()
	r.end()
}

func TestFilesCalledAsTheStateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "logs", "app.log")
	if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, path, "one\n")
	again(t, newLog(), Options{Names: []string{filepath.Join(dir, "logs", "*")}, State: filepath.Join(dir, "app.log")}, path, "one\n")
}

func TestStateFilesThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for _, state := range []string{filepath.Join(dir, "none", "state"), dir} {
		if _, err := New(Options{Names: []string{filepath.Join(dir, "app.log")}, Open: newLog().open, State: state}); err == nil {
			t.Errorf("%s: no error", state)
		}
	}
	if _, err := New(Options{Names: []string{filepath.Join(dir, "[a")}, Open: newLog().open}); err == nil {
		t.Error("no error of a pattern that is none")
	}
}
