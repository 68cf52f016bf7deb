//go:build linux

package integration

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// followingDaemon starts symfilterd with one pipeline, from a file to a file. state must end in
// app.files, the daemon's name for the checkpoint.
func followingDaemon(t *testing.T, log, state, out string, poll bool) *following {
	t.Helper()
	config := filepath.Join(filepath.Dir(out), "config.yaml")
	text := fmt.Sprintf("log: {level: error}\nstate: %s\nsymbols: {no_default_debug_directories: true, cache_directory: %s}\npipelines:\n"+
		"  app: {input: {files: [%s], poll: %v}, output: {file: %s}}\n", filepath.Dir(state), filepath.Dir(state), log, poll, out)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	appendTo(t, out, "") // the daemon may be killed before its first write
	p := &following{cmd: exec.Command(daemonCommand(t), "--config", config), out: out, ended: make(chan error, 1)}
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { p.cmd.Process.Kill() })
	return p
}

// A killed daemon must lose no line. It may print a line twice only if the checkpoint did not cover
// the line before the kill.
func TestKilledDaemonsLoseNothing(t *testing.T) {
	kills, runs, often, most := 4, 3, 3, 100
	if long() {
		kills, runs, often, most = 100, 10, 100, 25
	}
	daemonCommand(t) // built before the writers begin
	t.Run("rotations", func(t *testing.T) { killedWhileFilesRotate(t, followingDaemon, kills) })
	t.Run("after a checkpoint", func(t *testing.T) { killedBehindTheirCheckpoint(t, followingDaemon, runs) })
	t.Run("often", func(t *testing.T) {
		killedOften(t, followingDaemon, often, most, 200*time.Millisecond, time.Second)
	})
}

// After a signal, the daemon must end within five seconds. After a second signal, it must end at
// once.
func TestDaemonsEndSoon(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, but never answers
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const crash = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7a8a9}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n{{{bt:0:0x1010}}}\n"
	for name, test := range map[string]struct {
		symbols, output string
		files           int
		text            string
		blocks          bool // the output has no reader
		again           bool // a second signal follows
	}{
		"idle":            {output: "file: DIR/out", files: 1, text: "one\n"},
		"silent server":   {symbols: "debuginfod_urls: ['http://" + server.Addr().String() + "'], ", output: "file: DIR/out", files: 1, text: "one\n" + crash},
		"thousand files":  {output: "file: DIR/out", files: 1000, text: "one\n"},
		"full disk":       {output: "file: /dev/full", files: 20, text: "one\n", blocks: true},
		"unread pipe":     {output: "stdout: text", files: 20, text: strings.Repeat("a line that nobody reads\n", 20000), blocks: true},
		"signalled twice": {output: "stdout: text", files: 20, text: strings.Repeat("a line that nobody reads\n", 20000), blocks: true, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			config := filepath.Join(dir, "config.yaml")
			text := "log: {level: debug}\nstate: DIR/state\nsymbols: {" + test.symbols + "no_default_debug_directories: true, cache_directory: DIR/cache}\npipelines:\n" +
				"  app: {input: {files: ['DIR/*.log']}, patience: {servers: 10m, per_minute: 1m}, output: {" + test.output + "}}\n"
			if err := os.WriteFile(config, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
				t.Fatal(err)
			}
			for i := range test.files {
				appendTo(t, filepath.Join(dir, fmt.Sprintf("%d.log", i)), test.text)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := exec.Command(daemonCommand(t), "--config", config)
			stderr := new(messages)
			cmd.Stdout, cmd.Stderr = w, stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			defer cmd.Process.Kill()
			defer func() {
				if t.Failed() {
					t.Log(stderr.String())
				}
			}()
			switch {
			case test.output == "stdout: text":
				until(t, "the pipe is full", func() bool { return unread(t, r) >= 1<<16-4096 })
			case test.blocks:
				until(t, "it is messages", func() bool { return strings.Contains(stderr.String(), "no space left") })
			default:
				until(t, "the lines", func() bool {
					out, _ := os.ReadFile(filepath.Join(dir, "out"))
					return bytes.Count(out, []byte("one\n")) == test.files
				})
			}
			begin := time.Now()
			cmd.Process.Signal(syscall.SIGTERM)
			if test.again {
				time.Sleep(300 * time.Millisecond)
				cmd.Process.Signal(syscall.SIGTERM)
			}
			err = cmd.Wait()
			took := time.Since(begin)
			if code := cmd.ProcessState.ExitCode(); code == 0 == test.again {
				t.Errorf("exit code %d, %v: %s", code, err, stderr.String())
			}
			if took > 30*time.Second { // otherwise it would block forever
				t.Errorf("took %v, want at most five seconds", took)
			} else if took > 5*time.Second {
				t.Logf("took %v: a busy machine?", took)
			}
		})
	}
}

func TestDaemonsFollowRotationsWithCompression(t *testing.T) {
	rotations := 20
	if long() {
		rotations = 1000
	}
	const each, kept = 50, 6 // lines of a file; generations
	dir := t.TempDir()
	log, state, out := filepath.Join(dir, "app.log"), filepath.Join(dir, "app.files"), filepath.Join(dir, "printed")
	appendTo(t, log, numberedLine(0))
	p := followingDaemon(t, log, state, out, false)
	rotate := func() {
		for g := kept; g > 1; g-- {
			os.Rename(fmt.Sprintf("%s.%d.gz", log, g-1), fmt.Sprintf("%s.%d.gz", log, g)) // some do not exist yet
		}
		if text, err := os.ReadFile(log + ".1"); err == nil {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			z.Write(text)
			z.Close()
			if err := os.WriteFile(log+".2.gz", packed.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			os.Remove(log + ".1")
		}
		if err := os.Rename(log, log+".1"); err != nil {
			t.Fatal(err)
		}
		appendTo(t, log, "")
	}
	printed := func(n int) func() bool {
		return func() bool { return strings.HasSuffix(lastBytes(t, out), numberedLine(n-1)) }
	}
	n := 1
	until(t, "the first line", printed(n)) // files rotated before the first start are not read
	for i := range rotations {
		stopped := i%10 == 7 || i%10 == 8 // for two rotations
		if i%10 == 7 {
			p.cmd.Process.Signal(syscall.SIGTERM)
			if err := <-p.ended; err != nil {
				t.Fatalf("%v: %s", err, p.stderr.String())
			}
		}
		appendTo(t, log, numberedLines(n, n+each))
		n += each
		rotate()
		if i%10 == 8 {
			p = followingDaemon(t, log, state, out, false)
		}
		if !stopped && i%3 == 0 || i%10 == 8 {
			until(t, fmt.Sprintf("line %d", n-1), printed(n))
		}
	}
	appendTo(t, log, numberedLines(n, n+1))
	until(t, "the last line", printed(n+1))
	p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
	if got := readFile(t, out); got != numberedLines(0, n+1) {
		t.Errorf("%d bytes came out, want %d: each line once\n%s", len(got), (n+1)*numberedSize, p.stderr.String())
	}
}
