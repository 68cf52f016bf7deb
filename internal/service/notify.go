// Package service connects a daemon with the service manager that started it. It reports states to
// systemd, takes over the sockets that systemd has opened, and writes log records with the
// journal's priorities.
//
// Everything is optional. Without a service manager, a [Manager] sends nothing, there are no
// [Sockets], and the log is ordinary text.
package service

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// sendTime bounds one message: a receiver that does not read must not stop the daemon. A
	// receiver's queue has 512 datagrams in systemd, and 10 elsewhere.
	sendTime = time.Second

	maxStatus = 1000 // bytes of a status text: a line of `systemctl status`
)

// A Manager is the service manager that started this process: see sd_notify(3). The zero value is
// for processes without a service manager, and sends nothing. A Manager is safe for concurrent use.
type Manager struct {
	address  string // address of its datagram socket; empty: it wants no messages
	watchdog time.Duration

	mu   sync.Mutex
	conn *net.UnixConn // nil if none is open
}

// Connect returns the service manager that the environment names. It removes the manager's
// variables, so that no child process uses them. It connects at once, since a sandbox may deny that
// later. An error lists unusable variables; the Manager is still usable.
func Connect() (*Manager, error) {
	m, err := fromEnv(os.Getenv, os.Getpid())
	m.connect() // if this fails, the first message reports it
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	return m, err
}

// fromEnv returns the service manager that getenv names for the process pid. It does not connect.
func fromEnv(getenv func(string) string, pid int) (*Manager, error) {
	m := &Manager{}
	var faults []string
	switch address := getenv("NOTIFY_SOCKET"); {
	case address == "":
	case address[0] == '@' || address[0] == '/':
		m.address = address
	default:
		faults = append(faults, fmt.Sprintf("NOTIFY_SOCKET=%s: neither an absolute path nor an abstract name that begins with @; nothing is sent", address))
	}
	if usec := getenv("WATCHDOG_USEC"); usec != "" {
		n, err := strconv.ParseInt(usec, 10, 64)
		switch own := getenv("WATCHDOG_PID"); {
		case own != "" && own != strconv.Itoa(pid): // meant for the program that started this one
		case err != nil || n <= 0 || n > int64(maxWatchdog/time.Microsecond):
			faults = append(faults, fmt.Sprintf("WATCHDOG_USEC=%s: not a number of microseconds; the watchdog is off", usec))
		default:
			m.watchdog = time.Duration(n) * time.Microsecond
		}
	}
	if len(faults) > 0 {
		return m, fmt.Errorf("environment of the service manager: %s", strings.Join(faults, "; "))
	}
	return m, nil
}

// maxWatchdog bounds the interval of a watchdog: sums of durations must not overflow.
const maxWatchdog = 365 * 24 * time.Hour

// Watchdog returns the longest time that the service manager allows between two calls of Alive. It
// is 0 without a watchdog. Callers use half of it, as sd_watchdog_enabled(3) recommends.
func (m *Manager) Watchdog() time.Duration { return m.watchdog }

// Ready reports that the start, or a reload, is complete.
func (m *Manager) Ready(status string) error { return m.send("READY=1", statusLine(status)) }

// Reloading reports that a reload begins. Ready must follow, even after a failure.
func (m *Manager) Reloading(status string) error {
	return m.send("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic().Microseconds(), 10), statusLine(status))
}

// Stopping reports that the service has begun to stop.
func (m *Manager) Stopping(status string) error { return m.send("STOPPING=1", statusLine(status)) }

// Alive restarts the watchdog's interval.
func (m *Manager) Alive() error { return m.send("WATCHDOG=1") }

// Status sets the text of `systemctl status`.
func (m *Manager) Status(text string) error { return m.send(statusLine(text)) }

// Extend requests that the start, reload or stop in progress may take d from now.
func (m *Manager) Extend(d time.Duration) error {
	return m.send("EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(d.Microseconds(), 10))
}

// statusLine returns the STATUS= line of a message. systemd ignores a status that is not valid
// UTF-8, and a line break would begin another assignment.
func statusLine(text string) string {
	text = oneLine(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > maxStatus {
		n := maxStatus
		for !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n] + "…"
	}
	return "STATUS=" + text
}

// connect opens the connection if none is open. The caller holds m.mu, unless no other goroutine
// has m yet.
func (m *Manager) connect() (err error) {
	if m.conn == nil && m.address != "" {
		m.conn, err = net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.address, Net: "unixgram"})
	}
	return err
}

// send sends assignments as one datagram. If that fails, except by a timeout, it connects and sends
// again: the receiver may have been restarted.
func (m *Manager) send(assignments ...string) error {
	if m.address == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	text := []byte(strings.Join(assignments, "\n"))
	err := m.write(text)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && m.conn != nil {
		m.conn.Close()
		m.conn = nil
		err = m.write(text)
	}
	if err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	return nil
}

func (m *Manager) write(text []byte) error {
	if err := m.connect(); err != nil {
		return err
	}
	m.conn.SetWriteDeadline(time.Now().Add(sendTime)) // if it fails, so does Write
	_, err := m.conn.Write(text)
	return err
}
