package service

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheEnvironmentNamesTheServiceManager(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want *Manager
		err  string
	}{
		{"none", nil, &Manager{}, ""},
		{"a path", map[string]string{"NOTIFY_SOCKET": "/run/systemd/notify"}, &Manager{address: "/run/systemd/notify"}, ""},
		{"an abstract name", map[string]string{"NOTIFY_SOCKET": "@a/b"}, &Manager{address: "@a/b"}, ""},
		{"another address", map[string]string{"NOTIFY_SOCKET": "vsock:2:1234"}, &Manager{}, "environment of the service manager: NOTIFY_SOCKET=vsock:2:1234: neither an absolute path nor an abstract name that begins with @; nothing is sent"},
		{"a watchdog", map[string]string{"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, &Manager{watchdog: 30 * time.Second}, ""},
		{"a watchdog of any process", map[string]string{"WATCHDOG_USEC": "1"}, &Manager{watchdog: time.Microsecond}, ""},
		{"a watchdog of another process", map[string]string{"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, &Manager{}, ""},
		{"no number", map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "30s"}, &Manager{address: "/n"}, "environment of the service manager: WATCHDOG_USEC=30s: not a number of microseconds; the watchdog is off"},
		{"zero", map[string]string{"WATCHDOG_USEC": "0"}, &Manager{}, "environment of the service manager: WATCHDOG_USEC=0: not a number of microseconds; the watchdog is off"},
		{"more than a duration holds", map[string]string{"WATCHDOG_USEC": "9223372036854775807"}, &Manager{}, "environment of the service manager: WATCHDOG_USEC=9223372036854775807: not a number of microseconds; the watchdog is off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := fromEnv(func(name string) string { return tt.env[name] }, 7)
			if got := text(err); got != tt.err || m.address != tt.want.address || m.watchdog != tt.want.watchdog {
				t.Errorf("got %+v, %q; want %+v, %q", m, got, tt.want, tt.err)
			}
		})
	}
}

// text returns the text of an error, "" if it is nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Connect must remove its variables from the environment. A second call must then find no service
// manager.
func TestOtherProgramsDoNotTakeThemselvesForTheService(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/run/notify")
	t.Setenv("WATCHDOG_USEC", "2000000")
	m, err := Connect()
	if err != nil || m.address != "/run/notify" || m.Watchdog() != 2*time.Second {
		t.Errorf("got %+v, %v", m, err)
	}
	if m, err := Connect(); err != nil || m.address != "" || m.Watchdog() != 0 {
		t.Errorf("a second time: got %+v, %v", m, err)
	}
}

// notifySocket returns the socket of a service manager at address, and a Manager that sends to it.
// If address is empty, the socket is in a temporary folder.
func notifySocket(t *testing.T, address string) (*net.UnixConn, *Manager) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("windows has no datagram sockets with a path")
	}
	if address == "" {
		dir, err := os.MkdirTemp("", "notify") // short: a socket's path has at most 107 bytes
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		address = filepath.Join(dir, "s")
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	return conn, &Manager{address: address}
}

// receive returns the next message.
func receive(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestMessagesAreThoseOfSystemd(t *testing.T) {
	conn, m := notifySocket(t, "")
	for _, tt := range []struct {
		name string
		send func() error
		want string
	}{
		{"ready", func() error { return m.Ready("2 pipelines") }, "READY=1\nSTATUS=2 pipelines"},
		{"stopping", func() error { return m.Stopping("") }, "STOPPING=1\nSTATUS="},
		{"alive", m.Alive, "WATCHDOG=1"},
		{"extend", func() error { return m.Extend(1500 * time.Millisecond) }, "EXTEND_TIMEOUT_USEC=1500000"},
		{"a status", func() error { return m.Status("input app: no such file") }, "STATUS=input app: no such file"},
		{"a status with other assignments", func() error { return m.Status("a\nREADY=1\x00") }, "STATUS=a READY=1 "},
		{"a status that is not UTF-8", func() error { return m.Status("a\xff\xfeb") }, "STATUS=a\uFFFDb"},
		{"a long status", func() error { return m.Status("x" + strings.Repeat("ä", 600)) }, "STATUS=x" + strings.Repeat("ä", 499) + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.send(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, receive(t, conn)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNothingIsSentWithoutAServiceManager(t *testing.T) {
	var m Manager
	for _, err := range []error{m.Ready("a"), m.Reloading(""), m.Stopping(""), m.Alive(), m.Status(""), m.Extend(time.Second)} {
		if err != nil {
			t.Error(err)
		}
	}
}

// While the service manager restarts, sending a message fails. After the restart, the same Manager
// must be able to send.
func TestAManagerThatWasRestartedGetsTheNextMessage(t *testing.T) {
	conn, m := notifySocket(t, "")
	conn.Close()
	if err := os.Remove(m.address); err != nil {
		t.Fatal(err)
	}
	if err := m.Alive(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	conn, _ = notifySocket(t, m.address)
	if err := m.Alive(); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, conn); got != "WATCHDOG=1" {
		t.Errorf("got %q", got)
	}
}
