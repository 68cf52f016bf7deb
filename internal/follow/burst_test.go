//go:build unix

package follow

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A burst is a writer that pauses, and then writes a whole file and rotates it at once. A reader
// can open the file only shortly after its creation.
type burst struct {
	t     *testing.T
	path  string // the followed path
	file  string // the path to which lines are written
	style burstStyle
	rand  *rand.Rand
	n     int // files so far
	lines int // lines so far
	files []*burstFile
	names []string // rotated files that exist, the oldest first
}

// A burstFile is a file that was written.
type burstFile struct {
	first, end int // numbers of its lines
	born, died time.Time
}

// burstMost is the maximum number of lines in a file.
const burstMost = 130

// burstKept is the number of rotated files: each exists for at least 1 s.
const burstKept = 8

// A burstStyle is a way to rotate. rotate renames the complete file, and create begins the next
// file.
type burstStyle struct {
	name   string
	keep   int // rotated files that are kept
	create func(b *burst)
	rotate func(b *burst)
}

// chained renames rotated files like logrotate: .1 is the youngest.
func (b *burst) chained() {
	for i := len(b.names); i > 0; i-- {
		b.must(os.Rename(fmt.Sprintf("%s.%d", b.path, i), fmt.Sprintf("%s.%d", b.path, i+1)))
	}
	b.names = append(b.names, "")
	for i := range b.names {
		b.names[i] = fmt.Sprintf("%s.%d", b.path, len(b.names)-i)
	}
}

func (b *burst) renamedTo(name string) {
	b.must(os.Rename(b.file, name))
	b.names = append(b.names, name)
}

func (b *burst) must(err error) {
	if err != nil {
		b.t.Error(err)
	}
}

func (b *burst) touch() { b.must(os.WriteFile(b.file, nil, 0o666)) }

// link atomically makes path a symbolic link to target.
func (b *burst) link(target string) {
	b.must(os.Symlink(target, b.path+".new"))
	b.must(os.Rename(b.path+".new", b.path))
}

var burstStyles = []burstStyle{
	{"shifted", burstKept, (*burst).touch, func(b *burst) {
		b.chained()
		b.must(os.Rename(b.path, b.path+".1"))
	}},
	{"counted", burstKept, (*burst).touch, func(b *burst) { b.renamedTo(fmt.Sprintf("%s.%d", b.path, b.n)) }},
	{"dated", burstKept, (*burst).touch, func(b *burst) {
		b.renamedTo(b.path + time.Date(2026, 1, 1, 0, 0, b.n, 0, time.UTC).Format("-20060102-150405"))
	}},
	{"middle", burstKept, (*burst).touch, func(b *burst) {
		b.renamedTo(strings.TrimSuffix(b.path, ".log") + time.Date(2026, 1, 1, 0, 0, b.n, 0, time.UTC).Format("-2006-01-02T15-04-05.000") + ".log")
	}},
	{"removed", 0, (*burst).touch, func(b *burst) { b.must(os.Remove(b.path)) }},
	{"replaced", 0, func(b *burst) {
		b.must(os.WriteFile(b.path+".new", nil, 0o666))
		b.must(os.Rename(b.path+".new", b.path))
	}, func(b *burst) {}},
	{"packed", 0, (*burst).touch, func(b *burst) {
		name := fmt.Sprintf("%s.%d", b.path, b.n)
		b.must(os.Rename(b.path, name))
		wait := time.Duration(b.rand.IntN(60)) * time.Millisecond
		time.AfterFunc(wait, func() {
			os.WriteFile(name+".gz", []byte("compressed"), 0o666)
			os.Remove(name)
		})
	}},
	{"old", 1, (*burst).touch, func(b *burst) {
		b.must(os.Rename(b.path, b.path+".old")) // replaces the previous one
	}},
	{"link", burstKept, func(b *burst) {
		b.file = filepath.Join(filepath.Dir(b.path), fmt.Sprintf("run-%d.log", b.n))
		b.touch()
		b.link(filepath.Base(b.file))
	}, func(b *burst) { b.names = append(b.names, b.file) }},
	{"kubernetes", burstKept, func(b *burst) {
		pod := filepath.Join(filepath.Dir(b.path), "pod")
		b.file = filepath.Join(pod, "0.log")
		if b.n == 0 {
			b.must(os.Mkdir(pod, 0o777))
			b.link("pod/0.log")
		}
		b.touch()
	}, func(b *burst) {
		b.renamedTo(b.file + time.Date(2026, 1, 1, 0, 0, b.n, 0, time.UTC).Format(".20060102-150405"))
	}},
	{"copytruncate", burstKept, func(b *burst) {
		if b.n == 0 {
			b.touch()
		}
	}, func(b *burst) {
		b.chained()
		data, err := os.ReadFile(b.path)
		b.must(err)
		b.must(os.WriteFile(b.path+".1", data, 0o666))
		b.must(os.Truncate(b.path, 0))
	}},
}

// newBurst returns a writer whose first file has one line.
func newBurst(t *testing.T, style burstStyle, seed uint64) *burst {
	b := &burst{t: t, path: filepath.Join(t.TempDir(), "app.log"), style: style, rand: rand.New(rand.NewPCG(seed, 0))}
	b.file = b.path
	b.create()
	b.write(1)
	return b
}

func (b *burst) create() {
	b.style.create(b)
	b.files = append(b.files, &burstFile{first: b.lines, born: time.Now()})
	b.n++
}

// burstLine returns line n. Neither lines nor their beginnings are equal.
func burstLine(n int) string { return fmt.Sprintf("%06d a line of the burst\n", n) }

// write writes n lines in one call.
func (b *burst) write(n int) {
	var text strings.Builder
	for range n {
		text.WriteString(burstLine(b.lines))
		b.lines++
	}
	f, err := os.OpenFile(b.file, os.O_APPEND|os.O_WRONLY, 0)
	b.must(err)
	_, err = f.WriteString(text.String())
	b.must(err)
	b.must(f.Close())
	b.files[len(b.files)-1].end = b.lines
}

// rotations writes and rotates n files, and then writes the last lines.
func (b *burst) rotations(n int) {
	for range n {
		time.Sleep(time.Duration(125+b.rand.IntN(251)) * time.Millisecond)
		b.write(10 + b.rand.IntN(burstMost-9))
		b.style.rotate(b)
		for len(b.names) > b.style.keep {
			b.must(os.Remove(b.names[0]))
			b.names = b.names[1:]
		}
		if gone := len(b.files) - 1 - b.style.keep; gone >= 0 {
			b.files[gone].died = time.Now()
		}
		b.create()
	}
	time.Sleep(time.Second)
	b.write(1)
}

// A burstLoss counts missing, repeated and misplaced lines.
type burstLoss struct {
	lines     int // lines that did not arrive
	files     int // files with missing lines
	parts     int // files whose lines arrived only in part
	stayed    int // lost lines of files that existed for at least a second
	doubled   int
	unordered int
}

func (l burstLoss) String() string {
	return fmt.Sprintf("%d lines of %d files lost (%d of files that stayed, %d of files read in part), %d doubled, %d out of order", l.lines, l.files, l.stayed, l.parts, l.doubled, l.unordered)
}

// loss compares the printed lines with the written lines.
func (b *burst) loss(printed string) (l burstLoss) {
	count := make([]int, b.lines)
	last := -1
	for line := range strings.Lines(printed) {
		var n int
		if _, err := fmt.Sscanf(line, "%d", &n); err != nil || n >= b.lines || line != burstLine(n) {
			b.t.Errorf("%s: got the line %q", b.style.name, line)
			continue
		}
		if count[n]++; count[n] > 1 {
			l.doubled++
		}
		if n < last {
			l.unordered++
		}
		last = n
	}
	for _, f := range b.files {
		lost := 0
		for n := f.first; n < f.end; n++ {
			if count[n] == 0 {
				lost++
			}
		}
		if lost == 0 {
			continue
		}
		l.lines += lost
		l.files++
		if lost < f.end-f.first {
			l.parts++
		}
		if f.died.IsZero() || f.died.Sub(f.born) >= time.Second {
			l.stayed += lost
		}
	}
	return l
}

// missed adds up the files that were reported as gone before they could be opened.
func (l *log) missed() (n int) {
	for line := range strings.Lines(l.messages()) {
		var files int
		if strings.Contains(line, "a file with this name was gone") {
			n++
		} else if _, err := fmt.Sscanf(line, "app.log: %d files with this name were gone", &files); err == nil {
			n += files
		}
	}
	return n
}

// In each style, no line may be lost, repeated or misplaced if its file exists for a second. Files
// that were never opened must be reported. With TEST_LONG=1, at most burstMost more lines may be
// lost than by tail -F.
func TestBurstsBetweenRotationsAreRead(t *testing.T) {
	rotations, polls := 6, []bool{false}
	if long() {
		rotations, polls = 200, []bool{false, true}
	}
	type follower struct {
		*running
		poll bool
		tail *tailF
	}
	var wait sync.WaitGroup
	all := make(map[*burst][]follower)
	for i, style := range burstStyles {
		b := newBurst(t, style, uint64(i))
		for _, poll := range polls {
			x := follower{poll: poll}
			x.running = begin(t, newLog(), Options{Names: []string{b.path}, Poll: poll, Interval: pollInterval})
			x.expect(b.path, burstLine(0)) // the file is being followed
			if long() {
				x.tail = startTail(t, b.path, poll)
			}
			all[b] = append(all[b], x)
		}
		wait.Go(func() {
			if long() {
				time.Sleep(time.Second) // time for tail to start
			}
			b.rotations(rotations)
		})
	}
	wait.Wait()
	for b, followers := range all {
		for _, x := range followers {
			x.until(b.style.name+": the last line", func() bool { return strings.HasSuffix(x.text(b.path), burstLine(b.lines-1)) })
			l := b.loss(x.text(b.path))
			name := b.style.name
			if x.poll {
				name += ", polling"
			}
			if l.doubled > 0 || l.unordered > 0 || l.stayed > 0 || l.parts > 0 {
				t.Errorf("%s: %v; told\n%s", name, l, x.messages())
			}
			if !x.poll && l.files > 0 {
				x.until(name+": what was lost is told", func() bool { return x.missed() >= l.files })
			}
			if x.tail != nil {
				of := b.loss(x.tail.end())
				t.Logf("%-22s %d lines; %v; tail -F: %d lines", name, b.lines, l, of.lines)
				if l.lines > of.lines+burstMost {
					t.Errorf("%s: %d lines lost; tail -F loses %d", name, l.lines, of.lines)
				}
			}
		}
	}
}

type tailF struct {
	out bytes.Buffer
	cmd *exec.Cmd
}

func startTail(t *testing.T, path string, poll bool) *tailF {
	args := []string{"-F", "-n", "+1", path}
	if poll {
		args = append([]string{"---disable-inotify"}, args...)
	}
	x := &tailF{cmd: exec.Command("tail", args...)}
	x.cmd.Stdout = &x.out
	if err := x.cmd.Start(); err != nil {
		t.Skip(err)
	}
	return x
}

func (x *tailF) end() string {
	x.cmd.Process.Kill()
	x.cmd.Wait()
	return x.out.String()
}
