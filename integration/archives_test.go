//go:build linux

package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// logrotate is the path of the command, whose folder is not in every user's PATH.
const logrotate = "/usr/sbin/logrotate"

// rotators are ways to rotate and compress app.log: settings of logrotate, or a script.
var rotators = map[string]struct{ settings, script string }{
	"gzip":             {settings: "compress"},
	"gzip, delayed":    {settings: "compress\ndelaycompress"},
	"zstd":             {settings: "compress\ncompresscmd /usr/bin/zstd\ncompressext .zst\ncompressoptions -q"},
	"xz":               {settings: "compress\ncompresscmd /usr/bin/xz\ncompressext .xz\ncompressoptions -0"},
	"bzip2, delayed":   {settings: "compress\ndelaycompress\ncompresscmd /usr/bin/bzip2\ncompressext .bz2"},
	"dates":            {settings: "compress\ndateext\ndateformat -%Y%m%d-NUMBER"},
	"ends after dates": {settings: "compress\ndelaycompress\nextension .log\ndateext\ndateformat -%Y%m%d-NUMBER"},
	"copies":           {settings: "compress\ncopytruncate"},
	"copies, delayed":  {settings: "compress\ndelaycompress\ncopytruncate"},
	"zstd --rm":        {script: `mv app.log app.log-20261101-NUMBER && : >app.log && zstd -q --rm app.log-20261101-NUMBER`},
	"a pipe":           {script: `mv app.log app-20261101-NUMBER.log && : >app.log && xz -0 <app-20261101-NUMBER.log >app-20261101-NUMBER.log.xz.tmp && mv app-20261101-NUMBER.log.xz.tmp app-20261101-NUMBER.log.xz && rm app-20261101-NUMBER.log`},
	"no new file":      {script: `mv app.log app.log.20261101NUMBER && gzip app.log.20261101NUMBER`},
}

// The log is rotated while symfilter runs, is suspended, has ended or was killed. No line may be
// lost, and only after a kill may lines be printed twice. With TEST_LONG=1 there are 1,000
// rotations.
func TestCompressedRotationsLoseNothing(t *testing.T) {
	need(t, logrotate, "zstd", "xz", "bzip2")
	rotations := 6
	if long() {
		rotations = 1000/len(rotators) + 1
	}
	for name, by := range rotators {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(len(name)), 7))
			dir := t.TempDir()
			log, out, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "printed"), filepath.Join(dir, "state")
			total := 0
			lines := func() {
				var b strings.Builder
				for range 1 + random.IntN(400) {
					fmt.Fprintf(&b, "line %d %s\n", total, strings.Repeat("some text ", random.IntN(8)))
					total++
				}
				appendTo(t, log, b.String())
			}
			config := filepath.Join(dir, "logrotate.conf")
			rotate := func(i int) {
				t.Helper()
				number := fmt.Sprintf("%06d", i)
				cmd := exec.Command("sh", "-c", strings.ReplaceAll(by.script, "NUMBER", number))
				if by.settings != "" {
					text := fmt.Sprintf("%s {\nmissingok\nrotate 40\ncreate\n%s\n}\n", log, strings.ReplaceAll(by.settings, "NUMBER", number))
					if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					cmd = exec.Command(logrotate, "-f", "-s", filepath.Join(dir, "rotated"), config)
				}
				cmd.Dir = dir
				if said, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, said)
				}
			}
			killed := false
			var p *following
			begin := func() { p = startFollowing(t, out, nil, "-F", log, "--state="+state) }
			lines()
			begin() // earlier rotations are not read
			p.wait(t, func(printed string) bool { return strings.Contains(printed, fmt.Sprintf("line %d ", total-1)) })
			for i := 0; i < rotations; {
				what := random.IntN(4)
				switch what {
				case 1: // suspends the process
					p.cmd.Process.Signal(syscall.SIGSTOP)
				case 2:
					endQuietly(t, p, syscall.SIGTERM)
				case 3:
					killed = true
					endQuietly(t, p, syscall.SIGKILL)
				}
				for range 1 + random.IntN(5) {
					lines()
					rotate(i)
					i++
					if random.IntN(2) == 0 {
						lines()
					}
				}
				lines() // a run may wait for a new file of this name
				switch what {
				case 1:
					p.cmd.Process.Signal(syscall.SIGCONT)
				case 2, 3:
					begin()
				}
				if random.IntN(3) == 0 {
					time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
				} else { // the checkpoint covers all lines
					p.wait(t, func(printed string) bool { return strings.Contains(printed, fmt.Sprintf("line %d ", total-1)) })
				}
			}
			lines()
			p.wait(t, func(printed string) bool { return strings.Contains(printed, fmt.Sprintf("line %d ", total-1)) })
			printed := p.printed(t)
			endQuietly(t, p, syscall.SIGTERM)
			checkNumbers(t, printed, total, killed)
		})
	}
}

// endQuietly sends sig to symfilter, and waits until it has ended. The test fails if symfilter has
// reported anything but a missing, truncated or copied file.
func endQuietly(t *testing.T, p *following, sig syscall.Signal) {
	t.Helper()
	p.cmd.Process.Signal(sig)
	<-p.ended
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.Contains(line, "waiting for it") && !strings.Contains(line, "was truncated") && !strings.Contains(line, "was copied and truncated") && !strings.Contains(line, "more suppressed") {
			t.Errorf("it says %s", line)
		}
	}
}

// checkNumbers fails the test unless printed has the lines 0 to total-1 in order. If again is set,
// lines may be repeated.
func checkNumbers(t *testing.T, printed string, total int, again bool) {
	t.Helper()
	next, doubled := 0, 0
	for line := range strings.Lines(printed) {
		var n int
		if _, err := fmt.Sscanf(line, "line %d ", &n); err != nil {
			t.Fatalf("%q is printed", line)
		}
		switch {
		case n == next:
			next++
		case n > next:
			t.Fatalf("lines %d to %d are lost, or come late", next, n-1)
		case !again:
			t.Fatalf("line %d is printed after line %d", n, next-1)
		default:
			doubled++
			if doubled > 2*total {
				t.Fatalf("%d lines are doubled", doubled)
			}
		}
	}
	if next != total {
		t.Errorf("%d lines are printed, want %d", next, total)
	}
	t.Logf("%d lines, %d of them twice", total, doubled)
}
