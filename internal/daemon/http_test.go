package daemon

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/symfilter/symfilter/internal/testenv"
)

// resolved is the expected output for crash.
const resolved = "before\n[[[ELF module #0x0 \"libledger.so\"; BuildID=aabbccdd [0x1000-0x1fff](rx)]]]\n" +
	"    #0    0x0000000000001004 (libledger.so+0x4) (BuildId: aabbccdd)\nafter\n"

// freeAddress returns an unused local address. At the end of the test, it closes idle connections
// of the default client.
func freeAddress(t *testing.T) string {
	t.Helper()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return testenv.FreeAddress(t)
}

// serving starts a daemon with these pipelines, in which ADDR is replaced by the daemon's address,
// and DIR by a new folder.
func serving(t *testing.T, text string) (d *Daemon, url, dir string) {
	t.Helper()
	dir = t.TempDir()
	addr := freeAddress(t)
	d, _ = started(t, configuration(t, dir, webConfig(addr, text)), Options{})
	return d, "http://" + addr, dir
}

// webConfig returns a configuration with pipelines, in which ADDR is replaced by addr.
func webConfig(addr, pipelines string) string {
	return "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}\npipelines:\n" + strings.ReplaceAll(pipelines, "ADDR", addr)
}

const peerPipeline = "  service: {input: {http: \"ADDR\"}, output: {peer: true}}\n"

// post sends a request, and returns the response as text.
func post(t *testing.T, method, url string, body io.Reader, headers ...string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true // the next daemon has the same address
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return answerOf(t, http.DefaultClient, r)
}

// answerOf returns the status, some headers, the body and the trailers of a response.
func answerOf(t *testing.T, c *http.Client, r *http.Request) string {
	t.Helper()
	got, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	text := fmt.Sprintf("%d %s\n%s", got.StatusCode, got.Header.Get("Content-Type"), body)
	for _, name := range []string{"Allow", "Accept-Encoding", "Retry-After", resolvedHeader, unresolvedHeader} {
		if v := got.Header.Get(name); v != "" {
			text += "header " + name + ": " + v + "\n"
		}
		if v := got.Trailer.Get(name); v != "" {
			text += "trailer " + name + ": " + v + "\n"
		}
	}
	if err != nil {
		text += "error " + err.Error() + "\n"
	}
	return text
}

func gzipped(s string) *bytes.Buffer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return &b
}

func zstandard(t *testing.T, s string) *bytes.Buffer {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(z, s)
	z.Close()
	return &b
}

const (
	plainText = "200 text/plain; charset=utf-8\n"
	counts1   = "trailer Symfilter-Resolved: 0\ntrailer Symfilter-Unresolved: 1\n"
)

// unsized hides the length of a body, so that the client sends chunks.
type unsized struct{ io.Reader }

func TestRequestsAreAnsweredWithTheirLogFiltered(t *testing.T) {
	_, url, _ := serving(t, peerPipeline)
	url += "/v1/filter"
	zeros := strings.Repeat("0", 20<<20)
	answerJSON := `{"v":1,"text":"plain"}` + "\n"
	for _, test := range []struct {
		name, method, query string
		body                io.Reader
		headers             []string
		want                string
	}{
		{"a log", "POST", "", strings.NewReader(crash), nil, plainText + resolved + counts1},
		{"in chunks", "POST", "", unsized{strings.NewReader(crash)}, nil, plainText + resolved + counts1},
		{"by PUT, as curl -T does", "PUT", "", strings.NewReader(crash), nil, plainText + resolved + counts1},
		{"no last line end", "POST", "", strings.NewReader("a\nb"), nil, plainText + "a\nbtrailer Symfilter-Resolved: 0\ntrailer Symfilter-Unresolved: 0\n"},
		{"an empty log", "POST", "", strings.NewReader(""), nil, plainText + "trailer Symfilter-Resolved: 0\ntrailer Symfilter-Unresolved: 0\n"},
		{"gzip", "POST", "", gzipped(crash), []string{"Content-Encoding", "gzip"}, plainText + resolved + counts1},
		{"zstd", "POST", "", zstandard(t, crash), []string{"Content-Encoding", "zstd"}, plainText + resolved + counts1},
		{"gzip without its name", "POST", "", gzipped(crash), nil, plainText + resolved + counts1},
		{"a type of forms, which curl --data-binary sends", "POST", "", strings.NewReader(crash), []string{"Content-Type", "application/x-www-form-urlencoded"}, plainText + resolved + counts1},
		{"json by the URL", "POST", "?format=json", strings.NewReader("plain\n"), nil, "200 application/x-ndjson\n" + answerJSON + "trailer Symfilter-Resolved: 0\ntrailer Symfilter-Unresolved: 0\n"},
		{"json by Accept", "POST", "", strings.NewReader("plain\n"), []string{"Accept", "text/html, text/plain;q=0.1, application/x-ndjson;q=0.5"},
			"200 application/x-ndjson\n" + answerJSON + "trailer Symfilter-Resolved: 0\ntrailer Symfilter-Unresolved: 0\n"},
		{"nothing that is accepted", "POST", "", strings.NewReader("plain\n"), []string{"Accept", "image/png"},
			"406 text/plain; charset=utf-8\nthe answer is text/plain or application/x-ndjson; accept one of them\n"},
		{"GET", "GET", "", nil, nil, "405 text/plain; charset=utf-8\nsend the log with POST: curl -T FILE URL\nheader Allow: POST, PUT\n"},
		{"another type", "POST", "", strings.NewReader("x"), []string{"Content-Type", "multipart/form-data; boundary=x"},
			"415 text/plain; charset=utf-8\na body of type \"multipart/form-data; boundary=x\" is not accepted; send the log itself as text/plain or application/octet-stream: curl -T FILE URL, or --data-binary @FILE\nheader Accept-Encoding: gzip, zstd\n"},
		{"another encoding", "POST", "", strings.NewReader("x"), []string{"Content-Encoding", "br"},
			"415 text/plain; charset=utf-8\nthe encoding \"br\" of the body is unknown; use gzip or zstd, or none\nheader Accept-Encoding: gzip, zstd\n"},
		{"an unknown parameter", "POST", "?keys=1", strings.NewReader("x"), nil,
			"400 text/plain; charset=utf-8\n\"keys\" in the URL is unknown, or given twice; the URL may have ?key= and ?format=\n"},
		{"another format", "POST", "?format=html", strings.NewReader("x"), nil,
			"400 text/plain; charset=utf-8\n?format=\"html\" is neither text nor json\n"},
		{"a key with a control character", "POST", "?key=%0a", strings.NewReader("x"), nil,
			"400 text/plain; charset=utf-8\nthe key must be UTF-8 text of at most 128 bytes, without control characters\n"},
		{"no gzip", "POST", "", strings.NewReader("plain text\n"), []string{"Content-Encoding", "gzip"},
			"400 text/plain; charset=utf-8\nthe body is not a valid gzip file: gzip: invalid header; send the log again, or unpacked\n"},
		{"gzip that is cut", "POST", "", bytes.NewReader(gzipped(strings.Repeat(" ", 1000) + "\n").Bytes()[:28]), []string{"Content-Encoding", "gzip"},
			plainText + strings.Repeat(" ", 1000) + "\nerror unexpected EOF\n"},
		{"a window of 2 GiB", "POST", "", strings.NewReader("\x28\xb5\x2f\xfd\x00\xa8\x11\x00\x00a\n"), nil,
			"413 text/plain; charset=utf-8\nnot enough memory for compressed inputs: unpacking needs 2048 MiB; 256 of 256 are left; send the log unpacked, or raise symbols.max_memory\n"},
		{"a bomb", "POST", "", gzipped(zeros), []string{"Content-Encoding", "gzip"}, "bomb"},
		{"a bomb of zstd without its name", "POST", "", zstandard(t, zeros), nil, "bomb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := post(t, test.method, url+test.query, test.body, test.headers...)
			if test.want == "bomb" { // the lines unpacked so far are in the response, which is then cut off
				body, _, cut := strings.Cut(strings.TrimPrefix(got, plainText), "error ")
				if !cut || strings.Trim(body, "0") != "" {
					t.Errorf("got %d bytes, %q at the end", len(got), got[max(0, len(got)-100):])
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAnswersComeLineByLine(t *testing.T) {
	_, url, _ := serving(t, peerPipeline)
	r, w := io.Pipe()
	request, err := http.NewRequest("POST", url+"/v1/filter", r)
	if err != nil {
		t.Fatal(err)
	}
	go func() { io.WriteString(w, "first\n") }()
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	lines := bufio.NewReader(got.Body)
	for _, line := range []string{"first\n", "second\n", "third\n"} {
		if line != "first\n" {
			io.WriteString(w, line)
		}
		if answer, err := lines.ReadString('\n'); answer != line {
			t.Fatalf("got %q, %v, want %q", answer, err, line)
		}
	}
	w.Close()
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("got %q, %v after the last line", rest, err)
	}
}

func TestRequestsAreAcknowledgedWhenTheOutputHasTheirLines(t *testing.T) {
	_, url, dir := serving(t, "  app: {input: {http: \"ADDR\", path: /app}, output: {file: DIR/out.log}}\n")
	want := "204 \nheader Symfilter-Resolved: 0\nheader Symfilter-Unresolved: 1\n"
	for range 2 {
		if diff := cmp.Diff(want, post(t, "POST", url+"/app", strings.NewReader(strings.TrimSuffix(crash, "\n")))); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "out.log"))
	again := strings.Replace(resolved, "before\n", "before\n[[[reset]]]\n", 1) // the modules of the peer are already known
	if diff := cmp.Diff(resolved+again, string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got, want := post(t, "POST", url+"/v1/filter", strings.NewReader("x")), "404 text/plain; charset=utf-8\nno pipeline has the path \"/v1/filter\"; POST to /app\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// During a reload, no request may find its path without a pipeline.
func TestReloadsSwapPathsAtOnce(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	text := "  one: {input: {http: \"ADDR\"}, output: {peer: true}, filter: {color: never}}\n"
	other := "  two: {input: {http: \"ADDR\"}, output: {peer: true}}\n  more: {input: {http: \"ADDR\", path: /more}, output: {peer: true}}\n"
	d, _ := started(t, configuration(t, dir, webConfig(addr, text)), Options{})
	stop, bad := make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(bad)
		for {
			select {
			case <-stop:
				return
			default:
			}
			got, err := http.Post("http://"+addr+"/v1/filter", "text/plain", strings.NewReader("a\n"))
			if err != nil {
				bad <- err.Error()
				return
			}
			got.Body.Close()
			if got.StatusCode != 200 && got.StatusCode != 503 {
				bad <- got.Status
				return
			}
		}
	}()
	for i := range 10 {
		if i%2 == 0 {
			text, other = other, text
		}
		if err := d.Reload(configuration(t, dir, webConfig(addr, text))); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	for text := range bad {
		t.Error(text)
	}
}

// A request with a key must continue the context of that key. Without a key, it must continue its
// peer's context, unless the output is the response. Contexts must survive a restart.
func TestRequestsContinueWithTheContextOfTheirKey(t *testing.T) {
	module, frames, _ := strings.Cut(crash, "{{{bt")
	frames = "{{{bt" + frames
	const named, unnamed = "    #0    0x0000000000001004 (libledger.so+0x4) (BuildId: aabbccdd)\nafter\n", "    #0    0x0000000000001004 (no module)\nafter\n"
	const peers = "  service: {input: {http: \"ADDR\"}, output: {peer: true}, filter: {module_lines: none}}\n"
	const files = "  service: {input: {http: \"ADDR\"}, output: {file: DIR/out.log}, filter: {module_lines: none}}\n"
	for _, test := range []struct {
		name, pipelines, first, then string // first and then are the queries of two requests
		header                       []string
		want                         string
	}{
		{"no key", peers, "", "", nil, unnamed},
		{"a key", peers, "?key=a", "?key=a", nil, named},
		{"a key in the header", peers, "?key=a", "", []string{keyHeader, "a"}, named},
		{"another key", peers, "?key=a", "?key=b", nil, unnamed},
		{"a file and no key", files, "", "", nil, "before\n" + named},
		{"a file and a key", files, "?key=a", "?key=a", nil, "before\n" + named},
		{"a file and another key", files, "?key=a", "?key=b", nil, "before\n" + unnamed},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s restart %t", test.name, restart), func(t *testing.T) {
				dir, addr := t.TempDir(), freeAddress(t)
				c := configuration(t, dir, "state: DIR/state\n"+webConfig(addr, test.pipelines))
				_, stop := started(t, c, Options{})
				url := "http://" + addr + "/v1/filter"
				post(t, "POST", url+test.first, strings.NewReader(module))
				if restart {
					if err := stop(); err != nil {
						t.Fatal(err)
					}
					started(t, c, Options{})
				}
				got := post(t, "POST", url+test.then, strings.NewReader(frames), test.header...)
				if test.pipelines == files {
					await(t, filepath.Join(dir, "out.log"), test.want)
				} else if body, _, _ := strings.Cut(strings.TrimPrefix(got, plainText), "trailer"); body != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		}
	}
}

func TestAKeyIsThatOfOneRequestAtATime(t *testing.T) {
	_, url, _ := serving(t, peerPipeline)
	url += "/v1/filter?key=a"
	r, w := io.Pipe()
	request, err := http.NewRequest("POST", url, r)
	if err != nil {
		t.Fatal(err)
	}
	go func() { io.WriteString(w, "first\n") }()
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	want := "409 text/plain; charset=utf-8\nanother request with the key \"a\" is open; wait for its answer, or use another key\n"
	if got := post(t, "POST", url, strings.NewReader("second\n")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Close()
	io.Copy(io.Discard, got.Body)
	if got := post(t, "POST", url, strings.NewReader("third\n")); !strings.HasPrefix(got, plainText+"third\n") {
		t.Errorf("got %q", got)
	}
}

func TestReloadsCutNoRequest(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	text := webConfig(addr, strings.ReplaceAll(peerPipeline, "}\n", ", filter: {module_lines: none}}\n"))
	d, _ := started(t, configuration(t, dir, text), Options{})
	module, frames, _ := strings.Cut(crash, "{{{bt")
	r, w := io.Pipe()
	request, err := http.NewRequest("POST", "http://"+addr+"/v1/filter", r)
	if err != nil {
		t.Fatal(err)
	}
	go func() { io.WriteString(w, module) }()
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	before := make([]byte, len("before\n"))
	if _, err := io.ReadFull(got.Body, before); string(before) != "before\n" {
		t.Fatalf("got %q, %v", before, err)
	}
	if err := d.Reload(configuration(t, dir, strings.ReplaceAll(text, "none}", "none, basenames: true}"))); err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "{{{bt"+frames)
	w.Close()
	rest, err := io.ReadAll(got.Body)
	if want := "    #0    0x0000000000001004 (libledger.so+0x4) (BuildId: aabbccdd)\nafter\n"; string(rest) != want || err != nil {
		t.Errorf("got %q, %v, want %q", rest, err, want)
	}
}

// systemd-journal-upload appends /upload to its URL. New has to find the conflict, since the two
// configurations were parsed separately.
func TestInputsOfOneServerHaveTheirOwnPaths(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	c := configuration(t, dir, webConfig(addr, "  app: {input: {http: \"ADDR\", path: /a/upload}, output: {peer: true}}\n"))
	other := configuration(t, dir, webConfig(addr, "  journal: {input: {journal_upload: \"ADDR\", path: /a}, output: {file: DIR/out.log}}\n"))
	c.Pipelines["journal"] = other.Pipelines["journal"]
	_, err := New(c, Options{Log: slog.New(slog.DiscardHandler)})
	want := Faults{{Key: "pipelines.journal.input.journal_upload", Problem: "pipelines.app.input.http has the path /a/upload on this address too: give one of them another path"}}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
