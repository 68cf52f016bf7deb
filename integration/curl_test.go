//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// webDaemon starts a daemon with testdata's debug files. Its inputs are the socket DIR/web, and
// localhost:PORT by TLS with the certificate DIR/cert.pem.
func webDaemon(t *testing.T) (d *runningDaemon, secure string) {
	t.Helper()
	address := testenv.FreeAddress(t)
	own := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	own.Close()
	pair := own.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d = startDaemon(t, strings.NewReplacer("DEBUG", checkout+"/testdata/debug", "ADDRESS", address, "CERTS", dir).Replace(`
symbols: {no_default_debug_directories: true, debug_file_directories: [DEBUG], cache_directory: DIR/cache}
pipelines:
  web: {input: {http: "unix:DIR/web"}, output: {peer: true}}
  tls: {input: {http: "ADDRESS", tls: {certificate: CERTS/cert.pem, key: CERTS/key.pem}}, output: {peer: true}}
`))
	d.ready()
	if err := os.Symlink(filepath.Join(dir, "cert.pem"), d.path("cert.pem")); err != nil {
		t.Fatal(err)
	}
	return d, "https://" + address + "/v1/filter"
}

func TestCurlPrintsWhatTheCommandPrints(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	d, secure := webDaemon(t)
	const log = "../testdata/crash.log"
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large.log") // large enough that curl waits for 100 Continue
	if err := os.WriteFile(large, bytes.Repeat(text, 2<<20/len(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := func(file string, args ...string) string {
		return run(t, nil, command, append([]string{"--debug-file-directory", "../testdata/debug", "--no-default-debug-directories", file}, args...)...)
	}
	plain := []string{"--unix-socket", d.path("web"), "http://symfilterd/v1/filter"}
	by := func(more ...string) []string { return append(more, plain...) }
	for _, tt := range []struct {
		name  string
		args  []string
		stdin string // path of a file
		want  string
		told  string // a part of curl's report of the exchange
	}{
		{"a file", by("-T", log), "", printed(log), "< HTTP/1.1 200 OK"},
		{"a large file", by("-T", large), "", printed(large), "< HTTP/1.1 100 Continue"},
		{"standard input, as it comes", by("-T", "."), large, printed(large), "> Transfer-Encoding: chunked"},
		{"standard input at once", by("--data-binary", "@-"), large, printed(large), "> Content-Type: application/x-www-form-urlencoded"},
		{"standard input at once in chunks", by("--data-binary", "@-", "-H", "Transfer-Encoding: chunked"), large, printed(large), "> Transfer-Encoding: chunked"},
		{"a small file with a question first", by("--data-binary", "@"+log, "-H", "Expect: 100-continue"), "", printed(log), "< HTTP/1.1 100 Continue"},
		{"objects", []string{"-T", log, "--unix-socket", d.path("web"), "http://symfilterd/v1/filter?format=json"}, "", printed(log, "--output=json"), "< HTTP/1.1 200 OK"},
		{"HTTP/1.1 by TLS", []string{"-T", log, "--http1.1", "--cacert", d.path("cert.pem"), secure}, "", printed(log), "< HTTP/1.1 200 OK"},
		{"HTTP/2 by TLS", []string{"-T", large, "--http2", "--cacert", d.path("cert.pem"), secure}, "", printed(large), "< HTTP/2 200"},
		{"HTTP/2 from standard input", []string{"-T", ".", "--http2", "--cacert", d.path("cert.pem"), secure}, large, printed(large), "< HTTP/2 200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("curl", append([]string{"-sSvN", "--max-time", "60"}, tt.args...)...)
			if tt.stdin != "" {
				f, err := os.Open(tt.stdin)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				cmd.Stdin = f
			}
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil || !strings.Contains(stderr.String(), tt.told) {
				t.Fatalf("%v, want %q in\n%.4000s", err, tt.told, stderr.String())
			}
			if diff := cmp.Diff(tt.want, stdout.String()); diff != "" {
				t.Errorf("(-want +got)\n%.4000s", diff)
			}
		})
	}
}

// curl must print each answer before the next line is written. If the daemon is killed, curl must
// fail because of the incomplete answer.
func TestCurlGetsEachAnswerAtOnce(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	d, secure := webDaemon(t)
	for name, args := range map[string][]string{
		"HTTP/1.1": {"--unix-socket", d.path("web"), "http://symfilterd/v1/filter"},
		"HTTP/2":   {"--http2", "--cacert", d.path("cert.pem"), secure},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "curl", append([]string{"-sN", "-T", "."}, args...)...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewReader(out)
		for _, line := range []string{"one\n", "two\n"} {
			io.WriteString(in, line)
			if got, err := answers.ReadString('\n'); got != line || err != nil {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, line)
			}
		}
		defer func() {
			err := cmd.Wait()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 18 { // CURLE_PARTIAL_FILE
				t.Errorf("%s: curl ends with %v, want status 18", name, err)
			}
		}()
	}
	d.cmd.Process.Kill()
}
