//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestSoak runs for the time in TEST_SOAK (make soak) and then writes its report, docs/soak.md.
// Without TEST_SOAK it runs for seconds.
func TestSoak(t *testing.T) {
	asked := os.Getenv("TEST_SOAK")
	if asked == "" {
		soakFiles(t, 6*time.Second)
		return
	}
	duration, err := time.ParseDuration(asked)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("pipe", func(t *testing.T) { soakPipe(t, duration/10) })
	t.Run("files", func(t *testing.T) {
		report := soakFiles(t, duration)
		if t.Failed() {
			return
		}
		writeSoak(t, report)
	})
}

// writeSoak writes section to docs/soak.md, in place of the section with the same heading.
func writeSoak(t *testing.T, section string) {
	t.Helper()
	const page = "../docs/soak.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	heading, _, _ := strings.Cut(section, "\n")
	before, rest, found := strings.Cut(string(b), heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	if _, next, more := strings.Cut(rest, "\n## "); more {
		section += "\n## " + next
	}
	if err := os.WriteFile(page, []byte(before+section), 0o644); err != nil {
		t.Fatal(err)
	}
}

// soakPipe writes ordinary, broken and marked-up input to one process and checks that its memory
// does not grow.
func soakPipe(t *testing.T, duration time.Duration) {
	var input []byte
	for _, name := range []string{"crash.log", "clang-crash.log"} {
		log, err := os.ReadFile(filepath.Join("..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		input = append(input, log...)
	}
	input = append(append(input, oddities(1<<20)...), '\n')

	p := start(t, "--debug-file-directory="+filepath.Join("..", "testdata", "debug"))
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.out)
		read <- err
	}()
	usage := watchUsage(p.cmd.Process.Pid)
	rounds := 0
	for end := time.Now().Add(duration); time.Now().Before(end); rounds++ {
		if _, err := io.Copy(p.in, bytes.NewReader(input)); err != nil {
			t.Fatalf("%v\n%s", err, p.stderr.Bytes())
		}
	}
	of := usage.end()
	p.in.Close()
	if err := <-read; err != nil {
		t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, p.stderr.Bytes())
	}
	t.Logf("%d rounds of %d bytes, at most %d MiB, ratio %.2f", rounds, len(input), of.memory>>20, of.memoryRatio)
	const maxMemory = 96 << 20 // bytes resident
	if of.memory > maxMemory || duration >= time.Minute && of.memoryRatio > 1.25 {
		t.Errorf("memory grew to %.2f of what it was, and to %d MiB", of.memoryRatio, of.memory>>20)
	}
}

// The parameters of soakFiles.
const (
	soakCount  = 64                    // files
	soakRate   = 20 * time.Millisecond // interval between two lines of a file
	soakRotate = time.Second           // interval between two rotations of a file
	// number of rotated files that are kept; unread ones are kept longer
	soakKeep    = 10
	soakMarkup  = 5                      // % of the lines
	soakHostile = 1                      // % of the lines
	soakSample  = 250 * time.Millisecond // interval between two checks of memory and descriptors
)

// kind is the kind of a line of a soaked file.
type kind uint8

const (
	ordinary kind = iota
	hostile
	frames  // a backtrace element
	modules // modules and maps for the frames
)

// A soaked is a log: a file that is written and rotated, or a stream. The test looks for its lines
// in the output.
type soaked struct {
	number  int
	path    string
	runtime *runtime // nil for a plain log
	most    int      // maximum length of a line in bytes; 0 if there is none
	asks    bool     // the log has modules that only servers may have

	written, rotations int
	rotated            []int        // last line of each rotated file that is kept
	ends               []int        // last line of each rotated file
	seen               atomic.Int64 // number of lines in the output

	part     string // of a line of the output
	resolved atomic.Bool
}

// line returns line n of the file; it is the same in every run.
func (s *soaked) line(n int) (kind, string) {
	r := rand.New(rand.NewPCG(uint64(s.number), uint64(n)))
	head := fmt.Sprintf("f%02d %08d ", s.number, n)
	switch p := r.IntN(100); {
	case n%400 == 1:
		more := ""
		if s.asks {
			more = fmt.Sprintf("{{{module:5:far.so:elf:%040x}}}{{{mmap:0x0000600000000000:0x1000:load:5:rx:0x0}}}", r.IntN(500))
		}
		return modules, head + "{{{reset}}}" + more + "{{{module:0:inventory:elf:779e1ed32e11627838c3d1658cabab0af2a008bd}}}{{{mmap:0x0000555555554000:0x5000:load:0:rx:0x0}}}" +
			"{{{module:2:libledger.so:elf:eecd138796b4297ca7ee7bb08854e1173fee4bff}}}{{{mmap:0x00007ffff7fbc000:0x4000:load:2:rx:0x0}}}"
	case p < soakMarkup:
		if s.asks && r.IntN(3) == 0 {
			return frames, head + fmt.Sprintf("{{{bt:%d:%#016x:pc}}}", r.IntN(30), int64(0x0000600000000010)+r.Int64N(0xf00))
		}
		return frames, head + fmt.Sprintf("{{{bt:%d:%#016x:ra}}}", r.IntN(30), []uint64{0x00007ffff7fbd917, 0x0000555555555ac1, 0x0000555555555e19, 0x00007ffff7fbda26, 0x00007ffff7df324a}[r.IntN(5)])
	case p < soakMarkup+soakHostile:
		text := []string{
			"{{{bt:0:zz}}}", "{{{mmap:0x1000:0x10:load:9:r:0x0}}}", "{{{hexdict: A: 0x", "{{{module:7:x:elf:g}}}", strings.Repeat("{{{", 500), "\x00\x01\xff\xfe{{",
			"\x1b[31m{{{\x1b]0;t\a", "{{{dumpfile:a}}}", "2016-10-06T00:17:09Z stdout P {{{", `{"log":"{{{\\u00", "stream"`, "é\u202e\r", strings.Repeat("x", 70_000),
		}[r.IntN(12)]
		if r.IntN(20) == 0 {
			text = strings.Repeat("{{{pc:0x1", 150_000)
		}
		if s.most > 0 {
			text = text[:min(len(text), s.most)]
		}
		if s.runtime != nil {
			text = strings.ToValidUTF8(text, "?") // JSON cannot represent other text
		}
		return hostile, head + text + "."
	default:
		return ordinary, head + strings.Repeat("an ordinary line {of} a log, ", r.IntN(8)) + "."
	}
}

// write appends the next lines to the file, in the format of s.runtime if it is not nil.
func (s *soaked) write(lines int) error {
	var b strings.Builder
	for range lines {
		s.written++
		k, line := s.line(s.written)
		if s.runtime == nil {
			b.WriteString(line + "\n")
			continue
		}
		for size := 16 << 10; len(line) > size; line = line[size:] {
			b.WriteString(s.runtime.seal("stdout", line[:size], false))
		}
		if n := len(line) / 2; k == frames && s.written%3 == 0 {
			b.WriteString(s.runtime.seal("stdout", line[:n], false))
			line = line[n:]
		}
		b.WriteString(s.runtime.seal("stdout", line, true))
	}
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(b.String())
	return err
}

// rotate renames the file and the rotated files. It removes the oldest once the output has all its
// lines.
func (s *soaked) rotate() error {
	s.rotations++
	s.rotated = append(s.rotated, s.written)
	s.ends = append(s.ends, s.written)
	for len(s.rotated) > soakKeep && int64(s.rotated[0]) <= s.seen.Load() {
		if err := os.Remove(fmt.Sprintf("%s.%d", s.path, len(s.rotated)-1)); err != nil {
			return err
		}
		s.rotated = s.rotated[1:]
	}
	for i := len(s.rotated) - 1; i > 0; i-- {
		if err := os.Rename(fmt.Sprintf("%s.%d", s.path, i), fmt.Sprintf("%s.%d", s.path, i+1)); err != nil {
			return err
		}
	}
	return os.Rename(s.path, s.path+".1")
}

// A tally counts the lines of the output by kind, and the lines that are lost, repeated or changed.
type tally struct {
	lines, more, markup, hostile int64
	lost, again, changed         int64
	first                        string // the first error
	file, before, behind         int    // the first gap: its file, and the numbers of the lines before and after it
}

func (c *tally) wrong(of *int64, n int64, line string) {
	if *of += n; c.first == "" {
		c.first = fmt.Sprintf("%.300q", line)
	}
}

// examine checks a line of the output of s.
func (c *tally) examine(s *soaked, line string) {
	if s.runtime != nil {
		text, whole, ok := s.runtime.open(line)
		if !ok {
			c.wrong(&c.changed, 1, line)
			return
		}
		if s.part += text; !whole {
			return
		}
		line, s.part = s.part, ""
	} else {
		line = strings.TrimSuffix(line, "\n")
	}
	var number, n int
	if _, err := fmt.Sscanf(line, "f%d %d ", &number, &n); err != nil || number != s.number {
		c.wrong(&c.changed, 1, line)
		return
	}
	seen := int(s.seen.Load())
	k, want := s.line(n)
	switch {
	case n == seen && k == frames && strings.Contains(line, "    #"):
		c.more++ // another inlined call
		return
	case n <= seen:
		c.wrong(&c.again, 1, line)
		return
	case n > seen+1:
		if c.wrong(&c.lost, int64(n-seen-1), line); c.behind == 0 {
			c.file, c.before, c.behind = s.number, seen, n
		}
	}
	c.lines++
	switch k {
	case hostile:
		c.hostile++
	case frames, modules:
		c.markup++
	}
	switch {
	case k == frames && strings.Contains(line, "    #"):
		if strings.Contains(line, "/src/inventory/") {
			s.resolved.Store(true)
		}
	case k == modules && strings.Contains(line, "[[[ELF module #0x0"):
		s.resolved.Store(false)
	case k != frames && k != modules && line == want:
	default:
		c.wrong(&c.changed, 1, line)
	}
	s.seen.Store(int64(n))
}

// soakFiles follows 64 files, plain and of containers, that are written and rotated while the debug
// files of their modules appear one after the other. It returns a report.
func soakFiles(t *testing.T, duration time.Duration) string {
	dir := t.TempDir()
	tree := filepath.Join(dir, "debug")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	files := make(map[string]*soaked)
	var all []*soaked
	for i := range soakCount {
		s := &soaked{number: i, path: filepath.Join(dir, fmt.Sprintf("%02d.log", i))}
		switch i % 4 {
		case 2:
			s.runtime = runtimes()["cri"]
		case 3:
			s.runtime = runtimes()["docker"]
		}
		if i%2 == 1 { // the other debug files appear later
			if err := s.write(1); err != nil {
				t.Fatal(err)
			}
		}
		files[s.path] = s
		all = append(all, s)
	}
	p := start(t, "--follow", "--with-filename", "--state="+filepath.Join(dir, "state"), "--debug-file-directory="+tree, filepath.Join(dir, "*.log"))
	done := make(chan tally, 1)
	go func() { done <- examineAll(files, p.out) }()
	usage := watchUsage(p.cmd.Process.Pid)

	// Start times differ, so that the files are not all rotated at once.
	stop := make(chan struct{})
	var writers sync.WaitGroup
	failed := make(chan error, 3*soakCount)
	for i, s := range all {
		writers.Go(func() { failed <- s.writeAndRotate(stop, time.Duration(i)*soakRotate/soakCount) })
	}
	for i, name := range []string{"ee/cd138796b4297ca7ee7bb08854e1173fee4bff.debug", "77/9e1ed32e11627838c3d1658cabab0af2a008bd.debug"} {
		time.Sleep(duration / 12)
		if err := placeFile(filepath.Join("..", "testdata", "debug", ".build-id", name), filepath.Join(tree, ".build-id", name)); err != nil {
			t.Fatal(err)
		}
		t.Logf("debug file %d is there", i+1)
	}
	time.Sleep(duration / 12 * 10)
	close(stop)
	writers.Wait()
	steady := usage.end()
	for i := range soakCount {
		if err := <-failed; err != nil {
			t.Errorf("file %d: %v", i, err)
		}
	}

	// All written lines must be printed. Lines written from now on must be resolved after some
	// time.
	patience := time.Now().Add(2 * time.Minute)
	waiting := all
	for {
		waiting = slices.DeleteFunc(slices.Clone(waiting), func(s *soaked) bool { return s.resolved.Load() && s.seen.Load() == int64(s.written) })
		if len(waiting) == 0 || time.Now().After(patience) {
			break
		}
		for _, s := range waiting {
			// the last line may be a module that waits for its maps
			if s.seen.Load() >= int64(s.written)-1 {
				if err := s.write(40); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	if len(waiting) > 0 {
		t.Errorf("%d files are behind, or stay unresolved: of file %d %d of %d lines were seen", len(waiting), waiting[0].number, waiting[0].seen.Load(), waiting[0].written)
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	var exit *exec.ExitError
	err := p.cmd.Wait()
	if !errors.As(err, &exit) || exit.ExitCode() != 143 {
		t.Errorf("it ended with %v\n%s", err, p.stderr.Bytes())
	}
	c := <-done
	written, rotations := 0, 0
	for _, s := range all {
		written += s.written
		rotations += s.rotations
	}
	c.lost += int64(written) - c.lines - c.lost
	if c.behind > 0 {
		ends := all[c.file].ends
		i, _ := slices.BinarySearch(ends, c.before)
		t.Errorf("file %d: lost between lines %d and %d; its rotated files ended with %v", c.file, c.before, c.behind, ends[max(0, i-2):min(len(ends), i+4)])
	}
	if c.lost != 0 || c.again != 0 || c.changed != 0 {
		t.Errorf("%d lines lost, %d again or out of order, %d changed, of %d; the first: %s\n%.2000s", c.lost, c.again, c.changed, written, c.first, p.stderr.Bytes())
	}
	const (
		maxMemory = 384 << 20 // bytes resident
		// a rotated file is read for five more seconds, and a busy machine is slow
		maxFiles = 16 * soakCount
	)
	if steady.memory > maxMemory || steady.files > maxFiles {
		t.Errorf("at most %d MiB and %d descriptors were in use, want at most %d and %d", steady.memory>>20, steady.files, maxMemory>>20, maxFiles)
	}
	if duration >= 5*time.Minute && (steady.memoryRatio > 1.15 || steady.filesRatio > 1.15) {
		t.Errorf("memory grew to %.2f of what it was, descriptors to %.2f", steady.memoryRatio, steady.filesRatio)
	}
	t.Logf("%d lines, %d rotations; memory %d MiB, ratio %.2f; descriptors %d, ratio %.2f", written, rotations, steady.memory>>20, steady.memoryRatio, steady.files, steady.filesRatio)
	return fmt.Sprintf(soakReport, strings.TrimSuffix(duration.String(), "0s"), soakCount, soakCount/4, soakCount/4, soakMarkup, soakHostile, rotations, written, c.more, c.markup, c.hostile, c.lost, c.again, c.changed, steady.memoryRatio, steady.filesRatio, float64(steady.files)/soakCount)
}

const soakReport = `## symfilter --follow

For %s, %d files were followed with ` + "`symfilter --follow --state`" + `: %d logs in the format of CRI, %d in that of Docker's ` + "`json-file`" + `,
the others as programs write them. Each file got a line every 20 ms and was rotated every second; up to ten rotated files were kept.
%d %% of the lines had markup, %d %% were hostile: malformed elements, braces without end, control characters, invalid UTF-8, lines of up
to 1.3 MiB. Half of the files did not exist at the start. One debug file was added after 1/12 of the time, another after 1/6.

| | |
|---|---|
| rotations | %d |
| lines written | %d |
| further lines, of inlined calls | %d |
| lines with markup | %d |
| hostile lines | %d |
| **lines lost** | **%d** |
| **lines doubled or out of order** | **%d** |
| **lines without markup that were changed** | **%d** |
| resident memory, mean of the last quarter to that of the second | %.2f |
| open descriptors, mean of the last quarter to that of the second | %.2f |
| open descriptors at most, for each file | %.1f |

At the end, frames in each file were resolved with the debug files that were added late.
`

// examineAll checks the whole output.
func examineAll(files map[string]*soaked, out io.Reader) (c tally) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return c
		}
		path, line, ok := strings.Cut(line, ": ")
		s := files[path]
		if !ok || s == nil {
			c.wrong(&c.changed, 1, path)
			continue
		}
		c.examine(s, line)
	}
}

func (s *soaked) writeAndRotate(stop <-chan struct{}, begin time.Duration) error {
	time.Sleep(begin)
	line := time.NewTicker(soakRate)
	defer line.Stop()
	rotate := time.NewTicker(soakRotate)
	defer rotate.Stop()
	for {
		var err error
		select {
		case <-stop:
			return nil
		case <-line.C:
			err = s.write(1)
		case <-rotate.C:
			if err = s.rotate(); errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("rotated before it was there: %w", err)
			}
			if err == nil {
				err = s.write(1)
			}
		}
		if err != nil {
			return err
		}
	}
}

// placeFile copies a file as an installer does: the file appears when it is complete.
func placeFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// usage samples the resources of a process.
type usage struct {
	stop chan struct{}
	done chan used
}

type used struct {
	memory, files           int64 // maximum
	memoryRatio, filesRatio float64
	samples                 []int64 // of memory
}

// memoryRange divides the samples into ten consecutive parts. It returns the smallest and the
// largest mean of a part, each divided by the mean of all parts. It first drops the samples of the
// first third of the time, or of ten minutes if they are less.
func (u used) memoryRange() (least, most float64) {
	after := u.samples[min(len(u.samples)/3, int(10*time.Minute/soakSample)):]
	whole := max(1, mean(after))
	least = math.Inf(1)
	for i := range 10 {
		m := mean(after[i*len(after)/10:(i+1)*len(after)/10]) / whole
		least, most = min(least, m), max(most, m)
	}
	return least, most
}

func watchUsage(pid int) *usage {
	u := &usage{make(chan struct{}), make(chan used, 1)}
	go func() {
		var memory, files []int64
		tick := time.NewTicker(soakSample)
		defer tick.Stop()
		for {
			select {
			case <-u.stop:
				u.done <- used{slices.Max(memory), slices.Max(files), growth(memory), growth(files), memory}
				return
			case <-tick.C:
			}
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, value, found := strings.Cut(string(status), "VmRSS:")
			fds, err2 := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
			var kib int64
			if _, err3 := fmt.Sscan(value, &kib); err == nil && err2 == nil && err3 == nil && found {
				memory = append(memory, kib<<10)
				files = append(files, int64(len(fds)))
			}
		}
	}()
	return u
}

func (u *usage) end() used {
	close(u.stop)
	return <-u.done
}

// growth returns the mean of the last quarter of the samples divided by the mean of the second
// quarter.
func growth(samples []int64) float64 {
	n := len(samples)
	return mean(samples[n-n/4:]) / max(1, mean(samples[n/4:n/2]))
}

func mean(samples []int64) (sum float64) {
	for _, v := range samples {
		sum += float64(v)
	}
	return sum / float64(max(1, len(samples)))
}
