// Package testenv is for tests that need programs, files and rights that a machine may lack.
// Only tests import it.
//
// A missing program or file skips a test. If CI=true it fails the test instead: no test is lost
// unnoticed. Other reasons always skip the test: see [OnlyLong], [OnlyOn] and [Forbidden].
package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// Need skips the test if a program, or a file with an absolute path, is missing. It fails the
// test if CI=true.
func Need(t testing.TB, parts ...string) {
	t.Helper()
	var missing []string
	for _, p := range parts {
		if filepath.IsAbs(p) {
			if _, err := os.Stat(p); err != nil {
				missing = append(missing, p)
			}
		} else if _, err := exec.LookPath(p); err != nil {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		Missing(t, strings.Join(missing, ", "))
	}
}

// Find returns the path of the first file that matches pattern, in the syntax of [filepath.Glob].
// If no file matches, it skips the test, or fails it if CI=true.
func Find(t testing.TB, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		Missing(t, pattern)
	}
	return found[0]
}

// Missing skips the test because the machine lacks part, or fails it if CI=true.
func Missing(t testing.TB, part string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("missing: %s (make install-deps)", part)
	}
	t.Skipf("missing: %s (make install-deps)", part)
}

// OnlyLong skips the test unless TEST_LONG=1.
func OnlyLong(t testing.TB) {
	t.Helper()
	if !fuzztest.Long() {
		t.Skip("TEST_LONG=1 runs this test")
	}
}

// OnlyOn skips the test unless it runs on one of the platforms: "linux" or "linux/amd64".
func OnlyOn(t testing.TB, platforms ...string) {
	t.Helper()
	if !slices.Contains(platforms, runtime.GOOS) && !slices.Contains(platforms, runtime.GOOS+"/"+runtime.GOARCH) {
		t.Skipf("%s/%s: this test runs on %s", runtime.GOOS, runtime.GOARCH, strings.Join(platforms, ", "))
	}
}

// Forbidden skips the test because the kernel or the user's rights forbid an operation, such as
// tracing another process. The parameter what names the operation.
func Forbidden(t testing.TB, what string, reason any) {
	t.Helper()
	t.Skip("not permitted here: " + what + ": " + strings.TrimSpace(fmt.Sprint(reason)))
}

// ShowManPage returns a manual page as text, formatted by groff. It fails the test if groff prints
// a warning.
func ShowManPage(t testing.TB, page string) string {
	t.Helper()
	Need(t, "groff")
	cmd := exec.Command("groff", "-man", "-Tutf8", "-ww", "-P-cbou")
	cmd.Stdin = strings.NewReader(page)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%s: %v: %s", cmd, err, stderr.String())
	}
	return stdout.String()
}

// FreeAddress returns a TCP address of this machine at which nothing listens. Its port is below
// the range from which Linux assigns ports: no other program gets the port first. Until the test
// ends, no other call returns the address, in this process or in that of another package: the UDP
// socket of the same address is open that long.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))
		mark, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			mark.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { mark.Close() })
		return address
	}
	t.Fatal("no port of 100 is free")
	return ""
}

// Until waits until done returns true, and fails the test after a minute. The parameter what names
// the condition.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !Wait(done) {
		t.Fatalf("%s: not within a minute", what)
	}
}

// Wait waits until done returns true, for a minute at most, and reports whether done returned true.
// Unlike [Until], Wait does not fail the test.
func Wait(done func() bool) bool {
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Wrapped returns text as a paragraph with lines of at most 140 columns, like the paragraphs of the
// documents.
func Wrapped(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if column+1+len(word) > 140 {
			b.WriteByte('\n')
			column = 0
		} else if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// PeakMemory returns the most bytes of memory that a running process of Linux has used so far. The
// resources of an ended process would not do: they count the memory of the program that started it,
// too, because exec keeps the larger of both peaks.
func PeakMemory(t testing.TB, pid int) (size int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(string(status), "VmHWM:") // in KiB; missing after the process has ended
	if _, err := fmt.Sscan(value, &size); err != nil {
		t.Fatalf("VmHWM of process %d in %s: %v", pid, status, err)
	}
	return size << 10
}

// FileURL returns the URL of a file. Its path may have characters such as # or quotes.
func FileURL(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return (&url.URL{Scheme: "file", Path: abs}).String()
}
