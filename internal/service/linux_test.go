package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

// The time in a reload's message must be from CLOCK_MONOTONIC: systemd compares it with the time at
// which it sent SIGHUP.
func TestReloadsHaveTheTimeOfTheSystemsClock(t *testing.T) {
	// also tests abstract names
	conn, m := notifySocket(t, fmt.Sprintf("@symfilter-test-%d", os.Getpid()))
	before := monotonic()
	if err := m.Reloading("reading the configuration"); err != nil {
		t.Fatal(err)
	}
	got := receive(t, conn)
	after := monotonic()
	usec, ok := strings.CutPrefix(got, "RELOADING=1\nMONOTONIC_USEC=")
	usec, status, _ := strings.Cut(usec, "\n")
	n, err := strconv.ParseInt(usec, 10, 64)
	if at := time.Duration(n) * time.Microsecond; !ok || err != nil || at < before.Truncate(time.Microsecond) || at > after || status != "STATUS=reading the configuration" {
		t.Errorf("got %q between %v and %v", got, before, after)
	}
	uptime, err := os.ReadFile("/proc/uptime") // includes the time in suspend, hence the lower bound only
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseFloat(strings.Fields(string(uptime))[0], 64)
	if err != nil || after.Seconds() > seconds+1 {
		t.Errorf("the clock is at %v, the system runs for %s s", after, uptime)
	}
}

// If the receiver does not read, sending a message must fail after sendTime, one second.
func TestAManagerThatDoesNotReadIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	_, m := notifySocket(t, "")
	for range 10_000 { // net.unix.max_dgram_qlen is 10 to 512
		if err := m.Alive(); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("10,000 messages were taken")
}

func TestTheJournalsStreamIsThatOfTheVariable(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", w.Fd())) // pipe:[INODE]
	if err != nil {
		t.Fatal(err)
	}
	inode := strings.TrimSuffix(strings.TrimPrefix(name, "pipe:["), "]")
	var device uint64
	for d := range uint64(100) { // pipes are on an anonymous device with a small number
		if isJournal(fmt.Sprintf("%d:%s", d, inode), w) {
			device = d
		}
	}
	for _, tt := range []struct {
		stream string
		want   bool
	}{
		{fmt.Sprintf("%d:%s", device, inode), true},
		{fmt.Sprintf("%d:%s", device+1, inode), false},
		{fmt.Sprintf("%d:%s0", device, inode), false},
		{"", false},
		{":", false},
	} {
		if got := isJournal(tt.stream, w); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.stream, got, tt.want)
		}
	}
}

// TestMain runs the tests. TestSocketsOfSystemdAreTaken also starts this program, by
// systemd-socket-activate: with SERVICE_TEST_REPORT set, TestMain only writes a report to that
// file.
func TestMain(m *testing.M) {
	report := os.Getenv("SERVICE_TEST_REPORT")
	if report == "" {
		os.Exit(m.Run())
	}
	text, err := activated(os.Getenv("SERVICE_TEST_KIND"))
	if err != nil {
		text = "error: " + err.Error()
	}
	os.WriteFile(report, []byte(text), 0o600) // the test reports a file that is missing
}

// activated returns a report about the inherited sockets, with the data received on each.
func activated(kind string) (string, error) {
	s, err := Inherited()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "names %q\n", s.Names())
	for _, name := range []string{"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"} {
		if v, ok := os.LookupEnv(name); ok {
			fmt.Fprintf(&out, "%s=%s remains\n", name, v)
		}
	}
	// A child process that is started later must not inherit the sockets.
	open, err := exec.Command("sh", "-c", "ls /proc/$$/fd").Output()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&out, "descriptors of a child: %s\n", strings.Join(strings.Fields(string(open)), " "))
	if kind == "datagram" {
		conns, err := s.PacketConns("dev")
		if err != nil {
			return "", err
		}
		b := make([]byte, 100)
		n, _, err := conns[0].ReadFrom(b)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%d conns, received %q\n", len(conns), b[:n])
		_, err = s.Listeners("dev")
		fmt.Fprintln(&out, err)
		return out.String(), nil
	}
	for i := range 2 { // again after its listener was closed, as by a reload
		all, err := s.Listeners("web")
		if err != nil {
			return "", err
		}
		c, err := all[0].Accept()
		if err != nil {
			return "", err
		}
		got, err := io.ReadAll(c)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%d: %d listeners, %s\n", i, len(all), got)
		c.Close()
		for _, l := range all {
			l.Close()
		}
	}
	_, err = s.PacketConns("web")
	fmt.Fprintln(&out, err)
	_, err = s.Listeners("app")
	fmt.Fprintln(&out, err)
	return out.String(), nil
}

func TestSocketsOfSystemdAreTaken(t *testing.T) {
	testenv.Need(t, "systemd-socket-activate")
	for _, tt := range []struct {
		name, network string
		flags         []string
		want          string
	}{
		{"stream", "unix", []string{"--fdname=web:more"}, `names ["web" "more"]
descriptors of a child: 0 1 2
0: 1 listeners, first
1: 1 listeners, second
socket "web" of the service manager has the wrong type: its unit needs ListenDatagram=
no socket "app": the service manager has passed web, more
`},
		{"two of a name", "unix", []string{"--fdname=web:web"}, `names ["web"]
descriptors of a child: 0 1 2
0: 2 listeners, first
1: 2 listeners, second
socket "web" of the service manager has the wrong type: its unit needs ListenDatagram=
no socket "app": the service manager has passed web
`},
		{"datagram", "unixgram", []string{"--datagram", "--fdname=dev:more"}, `names ["dev" "more"]
descriptors of a child: 0 1 2
1 conns, received "first"
socket "dev" of the service manager has the wrong type: its unit needs ListenStream=
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "activate")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			socket, report := filepath.Join(dir, "s"), filepath.Join(dir, "report")
			args := append(tt.flags, "--listen="+socket, "--listen="+filepath.Join(dir, "more"),
				"--setenv=SERVICE_TEST_REPORT="+report, "--setenv=SERVICE_TEST_KIND="+tt.name, "--setenv=PATH="+os.Getenv("PATH"),
				os.Args[0])
			cmd := exec.Command("systemd-socket-activate", args...)
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stderr, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			texts := []string{"first", "second"}
			if tt.name == "datagram" {
				texts = texts[:1]
			}
			for _, text := range texts {
				send(t, tt.network, socket, text)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, stderr.Bytes())
			}
			got, err := os.ReadFile(report)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// send connects to a socket, which may not exist yet, and sends text.
func send(t *testing.T, network, socket, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial(network, socket)
		if err == nil {
			if _, err := c.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
