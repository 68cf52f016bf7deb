//go:build linux

package integration

import (
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestReloadsSetTheFormatAndTheLevelOfTheLog(t *testing.T) {
	const configuration = `
log: {level: info, format: text}
pipelines:
  a: {input: {files: ["DIR/*.log"]}, output: {file: DIR/out}}
`
	d := startDaemon(t, configuration)
	d.ready()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	other := strings.Replace(configuration, "format: text", "format: json", 1)
	d.configure(strings.Replace(other, `files: ["DIR/*.log"]`, "listen: 'tcp:"+busy.Addr().String()+"'", 1))
	d.signal(syscall.SIGHUP)
	until(t, "a failed reload leaves the log as it is", func() bool {
		return strings.Contains(d.stderr.String(), `level=ERROR msg="the configuration was not reloaded`)
	})
	d.configure(strings.Replace(configuration, "format: text", "format: json", 1))
	d.signal(syscall.SIGHUP)
	until(t, "the format changes", func() bool {
		return strings.Contains(d.stderr.String(), `"level":"INFO","msg":"the configuration was reloaded"}`)
	})
}
