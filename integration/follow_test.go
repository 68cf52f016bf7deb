//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testenv.Until(t, what, ok)
}

// timeout(1) signals both the process and its group. The two signals must count as one, and not as
// a second signal that ends symfilter at once.
func TestASignalThatComesTwiceIsOne(t *testing.T) {
	log := filepath.Join(t.TempDir(), "app.log")
	appendTo(t, log, "one\nunfinished")
	for range 10 {
		p := start(t, "-F", log)
		readLines(t, p.out, 1)
		p.cmd.Process.Signal(syscall.SIGTERM)
		time.Sleep(time.Millisecond) // simultaneous signals would be merged by the kernel
		p.cmd.Process.Signal(syscall.SIGTERM)
		rest, err := io.ReadAll(p.out)
		if p.cmd.Wait(); err != nil || string(rest) != "unfinished" {
			t.Fatalf("got %q, %v at the end", rest, err)
		}
	}
}

// A signal must end a follower soon, even if a server does not answer or the output is not read.
// The checkpoint must cover the printed lines.
func TestSignalsEndFollowersSoon(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, but never answers
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for name, args := range map[string][]string{
		"idle":            nil,
		"silent server":   {"--debuginfod-urls=http://" + server.Addr().String(), "--wait=1h"},
		"blocked output":  nil,
		"many checkpoint": {"--poll"},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(name+" "+sig.String(), func(t *testing.T) {
				dir := t.TempDir()
				log, other, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "other.log"), filepath.Join(dir, "state")
				appendTo(t, log, "one\n")
				appendTo(t, other, "two\n")
				p := start(t, append([]string{"-F", log, other, "--state=" + state}, args...)...)
				readLines(t, p.out, 2)
				until(t, "a checkpoint", func() bool { return saved(t, state, log) && saved(t, state, other) })
				switch name {
				case "silent server":
					appendTo(t, log, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7a8a9}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n{{{bt:0:0x1010}}}\n")
					appendTo(t, other, "three\n")
					readLines(t, p.out, 1) // the other file is not delayed
				case "blocked output":
					appendTo(t, log, strings.Repeat("a line that nobody reads\n", 200000))
					until(t, "the pipe is full", func() bool { return unread(t, p.out) > 1<<19 })
				}
				begin := time.Now()
				p.cmd.Process.Signal(sig)
				if name == "silent server" {
					go io.Copy(io.Discard, p.out)
				}
				p.cmd.Wait()
				if took := time.Since(begin); took > 30*time.Second { // otherwise an hour, or forever
					t.Errorf("took %v, want at most a second", took)
				} else if took > time.Second {
					t.Logf("took %v: a busy machine?", took)
				}
				if got, want := p.cmd.ProcessState.ExitCode(), 128+int(sig); got != want {
					t.Errorf("exit code %d, want %d\n%s", got, want, p.stderr.Bytes())
				}
				if name != "blocked output" && !saved(t, state, log) || !saved(t, state, other) {
					t.Errorf("the checkpoint does not say what was printed: %+v", readCheckpoint(t, state))
				}
			})
		}
	}
}

func readLines(t *testing.T, r *os.File, n int) (got string) {
	t.Helper()
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	for n > 0 {
		if _, err := r.Read(b[:]); err != nil {
			t.Fatalf("%v behind %q", err, got)
		}
		got += string(b[:])
		if b[0] == '\n' {
			n--
		}
	}
	return got
}

// unread returns the number of bytes in a pipe.
func unread(t *testing.T, f *os.File) (n int) {
	t.Helper()
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	conn.Control(func(fd uintptr) { n = inPipe(fd) })
	return n
}

// While the output is not read, memory must not grow, and no line may be lost.
func TestStoppedReadersStopTheReading(t *testing.T) {
	stopped := 2 * time.Second
	if long() {
		stopped = time.Minute
	}
	dir := t.TempDir()
	log, other := filepath.Join(dir, "app.log"), filepath.Join(dir, "other.log")
	appendTo(t, log, "first\n")
	p := start(t, "-F", log, other)
	readLines(t, p.out, 1)
	line := strings.Repeat("x", 99) + "\n"
	block := strings.Repeat(line, 10000)
	var before int64
	lines := 0
	for end := time.Now().Add(stopped); time.Now().Before(end); {
		appendTo(t, log, block)
		appendTo(t, other, line)
		lines += 10001
		if before == 0 && unread(t, p.out) > 1<<19 {
			before = p.peak(t)
		}
		time.Sleep(stopped / 200)
	}
	if after := p.peak(t); before == 0 || after > before+16<<20 {
		t.Errorf("memory grew from %d to %d KiB", before>>10, after>>10)
	}
	p.out.SetReadDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(p.out)
	for i := range lines {
		got, err := r.ReadString('\n')
		if err != nil || got != line {
			t.Fatalf("line %d of %d: %q, %v", i, lines, got, err)
		}
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Wait()
}

// The process must end at once without a message, even if nothing is left to print.
func TestAClosedOutputEndsTheFollowing(t *testing.T) {
	dir := t.TempDir()
	log, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "state")
	appendTo(t, log, "one\n")
	p := start(t, "-F", log, "--state="+state)
	readLines(t, p.out, 1)
	p.out.Close()
	if err := p.cmd.Wait(); err != nil || p.stderr.Len() > 0 {
		t.Errorf("%v, %q; want nothing", err, p.stderr.Bytes())
	}
	if !saved(t, state, log) {
		t.Error("no checkpoint")
	}
}

func TestStoppedFollowersCatchUp(t *testing.T) {
	dir := t.TempDir()
	log, out := filepath.Join(dir, "app.log"), filepath.Join(dir, "printed")
	want := "0\n"
	appendTo(t, log, want)
	p := startFollowing(t, out, nil, "-F", log)
	p.wait(t, func(printed string) bool { return printed == want })
	p.cmd.Process.Signal(syscall.SIGSTOP)
	until(t, "it is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	for i := range 5 {
		text := fmt.Sprintf("%d\n", i+1)
		appendTo(t, log, text)
		want += text
		for n := i + 1; n > 0; n-- {
			from := log
			if n > 1 {
				from = fmt.Sprintf("%s.%d", log, n-1)
			}
			if err := os.Rename(from, fmt.Sprintf("%s.%d", log, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	appendTo(t, log, "last\n")
	want += "last\n"
	p.cmd.Process.Signal(syscall.SIGCONT)
	p.wait(t, func(printed string) bool { return len(printed) >= len(want) })
	p.stop(t)
	if got := p.printed(t); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// For 1,000 files, memory must be small, and one instance of inotify must be enough. Idle files
// must take no processor time, and lines must be printed at once.
func TestAThousandFiles(t *testing.T) {
	idle := 5 * time.Second
	if long() {
		idle = time.Minute
	}
	const files, maxPeak, instances = 1000, 60 << 20, 1
	dir := t.TempDir()
	for i := range files {
		sub := filepath.Join(dir, strconv.Itoa(i%50))
		if err := os.MkdirAll(sub, 0o777); err != nil {
			t.Fatal(err)
		}
		appendTo(t, filepath.Join(sub, strconv.Itoa(i)+".log"), fmt.Sprintf("{{{module:0:a%d.out:elf:%08x}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\nfirst\n", i, i))
	}
	p := start(t, "-F", filepath.Join(dir, "*", "*.log"), "--state="+filepath.Join(dir, "state"))
	readLines(t, p.out, 2*files)
	line := func(i int) time.Duration {
		t.Helper()
		begin := time.Now()
		appendTo(t, filepath.Join(dir, strconv.Itoa(i%50), strconv.Itoa(i)+".log"), "line\n")
		if got := readLines(t, p.out, 1); got != "line\n" {
			t.Fatalf("got %q", got)
		}
		return time.Since(begin)
	}
	within := 0
	for range 5 { // the machine may be busy
		if within >= 25 {
			break
		}
		within = 0
		for i := range 50 {
			if line(i*19%files) < 50*time.Millisecond {
				within++
			}
		}
	}
	if within < 25 {
		t.Errorf("only %d of 50 lines were out within 50 ms", within)
	}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if target, _ := os.Readlink(link); target == "anon_inode:inotify" {
			n++
		}
	}
	if n != instances {
		t.Errorf("%d instances of inotify, want %d", n, instances)
	}
	until(t, "the last checkpoint", func() bool { return saved(t, filepath.Join(dir, "state"), filepath.Join(dir, "31", "931.log")) })
	most, used := idle/100+20*time.Millisecond, time.Duration(0)
	for range 3 { // the system also counts time taken by a busy machine
		before := processorTime(t, p.cmd.Process.Pid)
		time.Sleep(idle) // the measured idle time
		if used = processorTime(t, p.cmd.Process.Pid) - before; used <= most {
			break
		}
	}
	if used > most {
		t.Errorf("used %v of the processor in %v of nothing, and no less in two others", used, idle)
	} else {
		t.Logf("used %v of the processor in %v of nothing, peak memory %d MiB", used, idle, p.peak(t)>>20)
	}
	if peak := p.peak(t); peak > maxPeak {
		t.Errorf("got a peak of %d MiB, want at most %d", peak>>20, maxPeak>>20)
	}
}

func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * (time.Second / 100) // in ticks of 1/100 s
}

// Endless lines must take constant memory, and no lines of another file may be mixed in.
func TestEndlessLinesOfFilesTakeNoMemory(t *testing.T) {
	size := int64(64 << 20)
	if long() {
		size = 2 << 30
	}
	const maxPeak = 64 << 20
	dir := t.TempDir()
	long, other, out := filepath.Join(dir, "long.log"), filepath.Join(dir, "other.log"), filepath.Join(dir, "printed")
	appendTo(t, long, "first\n")
	appendTo(t, other, "other\n")
	p := startFollowing(t, out, nil, "-F", long, other)
	p.wait(t, func(printed string) bool { return len(printed) == len("first\nother\n") })
	f, err := os.OpenFile(long, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := bytes.Repeat([]byte("{{{"), 1<<20/3)
	for n := int64(0); n < size; n += int64(len(block)) {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	wrote := size + int64(len(block)) - 1 - (size+int64(len(block))-1)%int64(len(block))
	io.WriteString(f, "\n")
	appended := 1
	fileSize := func() int64 {
		info, err := os.Stat(out)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	until(t, "the long line", func() bool {
		appendTo(t, other, "other\n")
		appended++
		return fileSize() >= wrote
	})
	until(t, "all lines", func() bool { return fileSize() == int64(len("first\n\n"))+wrote+int64(appended*len("other\n")) })
	if peak := (&pipeline{cmd: p.cmd}).peak(t); peak > maxPeak {
		t.Errorf("got a peak of %d MiB, want at most %d", peak>>20, maxPeak>>20)
	}
	p.stop(t)
	got, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	r := bufio.NewReader(got)
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return
		case string(part) == "other\n" || string(part) == "first\n":
		case len(part) > 10 && strings.HasPrefix(string(part), "{{{"):
			n := int64(len(part))
			for err == bufio.ErrBufferFull {
				part, err = r.ReadSlice('\n')
				if n += int64(len(part)); len(bytes.TrimLeft(bytes.TrimSuffix(part, []byte{'\n'}), "{")) > 0 {
					t.Fatalf("%q in the long line", part)
				}
			}
			if n != wrote+1 {
				t.Errorf("the long line has %d bytes, want %d", n, wrote+1)
			}
		default:
			t.Fatalf("got %.100q", part)
		}
	}
}

// Each error must be printed once, when it is complete, even across a restart. The next file of the
// same name must be read as another report.
func TestReportsOfValgrindAreFollowed(t *testing.T) {
	need(t, "valgrind", "gcc")
	dir := t.TempDir()
	program, xml := filepath.Join(dir, "mem"), filepath.Join(dir, "whole.xml")
	run(t, nil, "gcc", "-g", "-O1", "-o", program, filepath.Join("testdata", "valgrind", "mem.c"), "-ldl", "-lpthread")
	run(t, nil, "valgrind", "-q", "--leak-check=full", "--xml=yes", "--xml-file="+xml, program, "rRl")
	report := readFile(t, xml)
	want := run(t, nil, command, xml)
	parts := strings.SplitAfter(report, "</error>\n")
	errors := parts[:len(parts)-1]
	if len(errors) < 2 {
		t.Fatalf("only %d errors in %s", len(errors), report)
	}
	// block returns the output for an error.
	block := func(i int) string {
		for b := range strings.SplitSeq(want, "\n\n") {
			if strings.Contains(b, fmt.Sprintf(" 0x%x, thread", i)) {
				b, _, _ = strings.Cut(b, "\n---")
				return b + "\n"
			}
		}
		t.Fatalf("no error %d in\n%s", i, want)
		return ""
	}
	name, state, out := filepath.Join(dir, "vg.xml"), filepath.Join(dir, "state"), filepath.Join(dir, "printed")
	// each error is cut into halves: one run reads the first half, the next run the second half
	for i, part := range errors {
		for _, half := range []string{part[:len(part)/2], part[len(part)/2:]} {
			appendTo(t, name, half)
			p := startFollowing(t, out, nil, "-F", name, "--state="+state)
			if strings.HasSuffix(half, "</error>\n") {
				p.wait(t, func(printed string) bool { return strings.Contains(printed, block(i)) })
			}
			upTo := int64(strings.LastIndexByte(readFile(t, name), '\n') + 1)
			until(t, "a checkpoint", func() bool {
				c := readCheckpoint(t, state)
				return len(c.Files) == 1 && len(c.Files[0].Reading) == 1 && c.Files[0].Reading[0].Off == upTo
			})
			p.stop(t)
		}
	}
	appendTo(t, name, parts[len(parts)-1])
	p := startFollowing(t, out, nil, "-F", name, "--state="+state)
	p.wait(t, func(printed string) bool { return len(printed) >= len(want) })
	if got := p.printed(t); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := os.Rename(name, name+".1"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, name, report)
	p.wait(t, func(printed string) bool { return len(printed) >= 2*len(want) })
	p.stop(t)
	if got := p.printed(t); got != want+want {
		t.Errorf("got\n%s\nwant twice\n%s", got, want)
	}
}

func TestFollowedLogsComeOutAsTheyAre(t *testing.T) {
	want := oddities(4 << 20)
	dir := t.TempDir()
	name, out := filepath.Join(dir, "odd.log"), filepath.Join(dir, "printed")
	random := rand.New(rand.NewPCG(5, 6))
	written := 0
	add := func(n int) {
		appendTo(t, name, string(want[written:written+n]))
		written += n
	}
	add(bytes.IndexByte(want, '\n') + 1)
	p := startFollowing(t, out, nil, "-q", "-F", name)
	p.wait(t, func(printed string) bool { return printed != "" })
	for i := 0; written < len(want); i++ {
		if i%20 == 19 && want[written-1] == '\n' {
			if err := os.Rename(name, fmt.Sprintf("%s.%d", name, i)); err != nil {
				t.Fatal(err)
			}
		}
		n := min(len(want)-written, 1+random.IntN(100000))
		if i%20 == 18 {
			if j := bytes.IndexByte(want[written:], '\n'); j >= 0 {
				n = j + 1
			}
		}
		add(n)
	}
	whole := bytes.LastIndexByte(want, '\n') + 1
	p.wait(t, func(printed string) bool { return len(printed) >= whole })
	p.stop(t)
	if got := p.printed(t); got != string(want) {
		t.Error(firstDifference([]byte(got), want))
	}
}

// Lines of several files must have the name of their file only with -H or --output=json.
func TestLinesSayTheirFile(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	appendTo(t, a, "one {{{symbol:_Z1fv}}}\ntwo\n")
	for flag, want := range map[string]string{
		"--output=json": `{"v":1,"file":"` + a + `","text":"one f()","elements":[{"tag":"symbol","name":"_Z1fv","demangled":"f()"}]}` + "\n" +
			`{"v":1,"file":"` + a + `","text":"two"}` + "\n" + `{"v":1,"file":"` + b + `","text":"three"}` + "\n",
		"-H":            a + ": one f()\n" + a + ": two\n" + b + ": three\n",
		"--output=text": "one f()\ntwo\nthree\n",
	} {
		os.Remove(b)
		p := start(t, "-F", flag, a, b)
		got := readLines(t, p.out, 2)
		appendTo(t, b, "three\n")
		got += readLines(t, p.out, 1)
		if got != want {
			t.Errorf("%s: got\n%swant\n%s", flag, got, want)
		}
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
}

func TestTheOutputIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "all.log")
	appendTo(t, filepath.Join(dir, "a.log"), "one\n")
	p := startFollowing(t, out, nil, "-F", filepath.Join(dir, "*"), "--state="+filepath.Join(dir, "state.log"))
	p.wait(t, func(printed string) bool { return printed == "one\n" })
	appendTo(t, filepath.Join(dir, "b.log"), "two\n")
	p.wait(t, func(printed string) bool { return printed == "one\ntwo\n" })
	until(t, "a checkpoint", func() bool { return saved(t, filepath.Join(dir, "state.log"), filepath.Join(dir, "b.log")) })
	p.stop(t)
	if got := p.printed(t); got != "one\ntwo\n" {
		t.Errorf("got %q", got)
	}
	p = startFollowing(t, out, nil, "-F", out)
	if <-p.ended; p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(p.stderr.String(), "is also the output") {
		t.Errorf("exit code %d, %q", p.cmd.ProcessState.ExitCode(), p.stderr.String())
	}
}
