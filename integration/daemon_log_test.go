//go:build linux

package integration

import (
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
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

func TestTheDaemonSaysThatItIsReady(t *testing.T) {
	address := testenv.FreeAddress(t)
	d := startDaemon(t, `
log: {format: text}
symbols: {cache_directory: DIR/cache}
state: DIR/state
pipelines:
  web: {input: {http: "`+address+`"}, output: {peer: true}}
  app: {input: {listen: "unix:DIR/app"}, output: {file: DIR/out}}
`)
	d.ready()
	_, release, ok := strings.Cut(strings.TrimSpace(run(t, nil, daemonCommand(t), "--version")), " ")
	version, _, _ := strings.Cut(release, " ")
	want := regexp.MustCompile(`^time=\S+ level=INFO msg="symfilterd is ready" version=\S+ pipelines="app, web" ` +
		regexp.QuoteMeta(`listeners="tcp:`+address+`, unix:`+d.path("admin")+`, unix:`+d.path("app")+`" sandbox="no new privileges, `) + `[^"]*"\n$`)
	if got := d.stderr.String(); !ok || !want.MatchString(got) || !strings.Contains(got, version) {
		t.Errorf("version %s: got %s, want %s", version, got, want)
	}
}
