//go:build linux

package integration

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// systemd opens a socket for datagrams, and starts symfilterd with it when the first one comes, which
// is filtered.
func TestDatagramSocketsOfSystemdAreInputs(t *testing.T) {
	need(t, "systemd-socket-activate")
	path := daemonCommand(t)
	dir, err := os.MkdirTemp("", "symfilterd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	conf, out, socket := filepath.Join(dir, "symfilter.yaml"), filepath.Join(dir, "out"), filepath.Join(dir, "s")
	text := strings.ReplaceAll(`
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
pipelines:
  devices: {input: {listen: "systemd:syslog"}, filter: {module_lines: none}, output: {file: DIR/out}}
`, "DIR", dir)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("systemd-socket-activate", "--datagram", "--listen="+socket, "--fdname=syslog", path, "--config", conf)
	var stderr lockedBuffer
	cmd.Stdout, cmd.Stderr = &stderr, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	var c net.Conn
	for range 6000 {
		if c, err = net.Dial("unixgram", socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "{{{module:0:libledger.so:elf:aabbccdd}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\nat {{{bt:0:0x1004:pc}}}\n")
	want := []byte("at #0 0x1004 (libledger.so+0x4) (BuildId: aabbccdd)\n")
	var got []byte
	for range 3000 {
		if got, _ = os.ReadFile(out); bytes.Equal(got, want) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v; want %q\n%s", got, err, want, stderr.String())
	}
}
