//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A cable is a pseudo-terminal: the device's end, and a link to symfilter's end.
type cable struct {
	device *os.File
	link   string
}

// plug makes a pseudo-terminal, as plugging in an adapter makes a port.
func plug(t *testing.T, link string) cable {
	t.Helper()
	return cable{testenv.Port(t, link), link}
}

// unplug removes the port. As with a real port, unread bytes are lost.
func (c cable) unplug(t *testing.T) {
	t.Helper()
	if err := os.Remove(c.link); err != nil {
		t.Fatal(err)
	}
	if err := c.device.Close(); err != nil {
		t.Fatal(err)
	}
}

// A monitor is a running symfilter that reads a serial port.
type monitor struct {
	cmd      *exec.Cmd
	out      *bufio.Reader
	messages *bufio.Reader
}

func startMonitor(t *testing.T, args ...string) *monitor {
	t.Helper()
	cmd := exec.Command(command, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	messages, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &monitor{cmd, bufio.NewReaderSize(out, 1<<20), bufio.NewReader(messages)}
}

// expect reads len(want) bytes of output and compares them.
func (m *monitor) expect(t *testing.T, want string) {
	t.Helper()
	b := make([]byte, len(want))
	n, err := io.ReadFull(m.out, b)
	if got := string(b[:n]); got != want {
		t.Fatalf("got %q (%v), want %q", got, err, want)
	}
}

// message returns a line of standard error, without the names of the program and the port.
func (m *monitor) message(t *testing.T, port string) string {
	t.Helper()
	line, err := m.messages.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "symfilter: "+port+": ")
	if !ok {
		t.Errorf("message %q is not of %s", line, port)
	}
	return rest
}

// interrupt ends the monitor with SIGINT and returns the rest of its output and its exit status.
func (m *monitor) interrupt(t *testing.T) (rest string, code int) {
	t.Helper()
	if err := m.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(m.out)
	if err != nil {
		t.Fatal(err)
	}
	m.cmd.Wait()
	return string(b), m.cmd.ProcessState.ExitCode()
}

func TestASerialPortIsReadUntilInterrupted(t *testing.T) {
	t.Setenv("SYMFILTER_WAIT", "") // the message has the default
	link := filepath.Join(t.TempDir(), "ttyUSB0")
	const retrying = "retrying every second, until Ctrl-C"
	m := startMonitor(t, "--baud=921600", link)
	if got := m.message(t, link); !strings.HasPrefix(got, "no such file or directory; ") || !strings.HasSuffix(got, "; retrying every second, for 1m30s") {
		t.Errorf("message %q, want one about the missing port", got)
	}
	for range 2 {
		c := plug(t, link)
		if got, want := m.message(t, link), "open"; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		io.WriteString(c.device, "rst:0x1 (POWERON)\r\nuart:~$ ") // a prompt has no line end
		m.expect(t, "rst:0x1 (POWERON)\r\nuart:~$ ")
		io.WriteString(c.device, "\r\n")
		m.expect(t, "\r\n")
		c.unplug(t)
		if got, want := m.message(t, link), "the device was disconnected; "+retrying; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	}
	if rest, code := m.interrupt(t); rest != "" || code != 0 {
		t.Errorf("ended with %d after %q, want 0 and nothing", code, rest)
	}
}

func TestASerialPortThatIsThereNeedsNoFlag(t *testing.T) {
	link := filepath.Join(t.TempDir(), "ttyACM0")
	c := plug(t, link)
	m := startMonitor(t, link)
	io.WriteString(c.device, "booting\n> ")
	m.expect(t, "booting\n> ")
	if rest, code := m.interrupt(t); rest != "" || code != 0 {
		t.Errorf("ended with %d after %q, want 0 and nothing", code, rest)
	}
}

// deviceLog returns a device's log with boots, lines truncated by resets, and noise from plugging.
func deviceLog(size int) []byte {
	r := rand.New(rand.NewPCG(15, 1))
	var b bytes.Buffer
	for b.Len() < size {
		switch r.IntN(40) {
		case 0:
			b.WriteString("ets Jun  8 2016 00:22:57\r\n\r\nrst:0xc (SW_CPU_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)\r\n")
		case 1:
			for range r.IntN(200) {
				b.WriteByte(byte(r.Uint32()))
			}
		case 2:
			fmt.Fprintf(&b, "\x1b[0;31mE (%d) wifi: disconnected, reason 0x%x\x1b[0m\r", r.IntN(1e6), r.IntN(256)) // truncated by a reset
		case 3:
			fmt.Fprintf(&b, "Backtrace: 0x%08x:0x%08x 0x%08x:0x%08x |<-CORRUPTED\r\n", 0x400d0000+r.IntN(1<<16), 0x3ffb0000+r.IntN(1<<14), 0x400d0000+r.IntN(1<<16), 0x3ffb0000+r.IntN(1<<14))
		default:
			fmt.Fprintf(&b, "I (%d) sensor: temperature %d.%d, heap %d\r\n", r.IntN(1e7), r.IntN(40), r.IntN(10), r.IntN(1e6))
		}
	}
	return b.Bytes()
}

// A pacedWriter writes at the speed of a port with this baud rate: ten bits per byte.
type pacedWriter struct {
	w     io.Writer
	rate  int64
	start time.Time
	sent  int64
}

func (p *pacedWriter) Write(b []byte) (n int, err error) {
	const piece = 64 // bytes that an adapter passes on at once
	for n < len(b) && err == nil {
		time.Sleep(time.Until(p.start.Add(time.Duration(p.sent * 10 * int64(time.Second) / p.rate))))
		var m int
		m, err = p.w.Write(b[n:min(n+piece, len(b))])
		n, p.sent = n+m, p.sent+int64(m)
	}
	return n, err
}

// A log of 41 MB takes an hour at 115,200 baud. If TEST_SOAK is set, the log is sent at this speed,
// but for no longer than the time in TEST_SOAK.
func TestALogThroughASerialPortLosesNothing(t *testing.T) {
	const rate = 115200
	size := int64(rate / 10 * 3600)
	asked := os.Getenv("TEST_SOAK")
	if asked != "" {
		soak, err := time.ParseDuration(asked)
		if err != nil {
			t.Fatal(err)
		}
		size = min(size, int64(soak.Seconds()*rate/10))
	}
	block := deviceLog(1 << 20)
	block = block[:min(int64(len(block)), size)]
	write := func(w io.Writer) error {
		for sent := int64(0); sent < size; sent += int64(len(block)) {
			if _, err := fmt.Fprintf(w, "%d\r\n%s", sent, block); err != nil {
				return err
			}
		}
		return nil
	}
	link := filepath.Join(t.TempDir(), "ttyUSB0")
	c := plug(t, link)
	m := startMonitor(t, link)
	var port io.Writer = c.device
	if asked != "" {
		port = &pacedWriter{w: port, rate: rate, start: time.Now()}
	}
	want, got := sha256.New(), sha256.New()
	sent := make(chan error, 1)
	total := &counting{w: want}
	if err := write(total); err != nil {
		t.Fatal(err)
	}
	go func() { sent <- write(port) }()
	n, err := io.CopyN(got, m.out, total.n)
	if err != nil {
		t.Fatalf("%d bytes of %d came out: %v", n, total.n, err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Error("the output is not the log")
	}
	if rest, code := m.interrupt(t); rest != "" || code != 0 {
		t.Errorf("ended with %d after %q, want 0 and nothing", code, rest)
	}
}

type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
