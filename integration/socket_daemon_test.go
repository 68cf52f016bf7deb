//go:build linux

package integration

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// systemd opens a socket, and starts symfilterd when the first connection or datagram arrives. A
// pipeline that names the socket as its input must filter the data.
func TestSocketsOfSystemdAreInputs(t *testing.T) {
	need(t, "systemd-socket-activate")
	for _, tt := range []struct {
		network string
		flags   []string
	}{
		{"unix", nil},
		{"unixgram", []string{"--datagram"}},
	} {
		t.Run(tt.network, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "symfilterd") // a socket's path has at most 107 bytes
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			conf, out, socket := filepath.Join(dir, "symfilter.yaml"), filepath.Join(dir, "out"), filepath.Join(dir, "s")
			text := strings.ReplaceAll(`
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
pipelines:
  devices: {input: {listen: "systemd:app"}, filter: {module_lines: none}, output: {file: DIR/out}}
`, "DIR", dir)
			if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			flags := append(tt.flags, "--listen="+socket, "--fdname=app", daemonCommand(t), "--config", conf)
			cmd := exec.Command("systemd-socket-activate", flags...)
			var stderr lockedBuffer
			cmd.Stdout, cmd.Stderr = &stderr, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill() })
			var c net.Conn
			until(t, "the socket is open", func() bool {
				c, err = net.Dial(tt.network, socket)
				return err == nil
			})
			defer c.Close()
			io.WriteString(c, "{{{module:0:libledger.so:elf:aabbccdd}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\nat {{{bt:0:0x1004:pc}}}\n")
			const want = "at #0 0x1004 (libledger.so+0x4) (BuildId: aabbccdd)\n"
			until(t, "the line is filtered", func() bool {
				got, _ := os.ReadFile(out)
				return len(got) >= len(want)
			})
			cmd.Process.Signal(syscall.SIGTERM)
			err = cmd.Wait()
			if got, _ := os.ReadFile(out); err != nil || string(got) != want {
				t.Errorf("got %q, %v; want %q\n%s", got, err, want, stderr.String())
			}
		})
	}
}
