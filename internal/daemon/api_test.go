package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/internal/testenv"
)

// serverID is the build ID of testdata/server, whose debug file is in testdata/debug.
const serverID = "da43cc177c674286dc64206eebed748fde112bed"

// runFrame is a frame in a request, and runAnswer the expected answer.
const (
	runFrame  = `{"build_id":"` + serverID + `","offset":"0x3fd7","return_address":true}`
	runAnswer = `{"frames":[{"function":"Server::run()","linkage":"_ZN6Server3runEv","file":"/src/server/server.cc","line":47,"column":14,"inlined":false}]}`
)

// serviceConfig returns a configuration with the service at addr.
func serviceConfig(addr, keys, rest string) string {
	return "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache, debug_file_directories: [../../testdata/debug]" + rest +
		"}\nservice: {listen: \"" + addr + "\", " + keys + "}\n"
}

// answering starts a daemon that has only the service.
func answering(t *testing.T, keys, rest string) (d *Daemon, url string) {
	t.Helper()
	addr := freeAddress(t)
	d, _ = started(t, configuration(t, t.TempDir(), serviceConfig(addr, keys, rest)), Options{})
	return d, "http://" + addr
}

const jsonAnswer = "200 application/json\n"

func TestTheServiceAnswersAddresses(t *testing.T) {
	d, url := answering(t, "symbolize: true", "")
	request := `{"frames":[` + runFrame + `,{"build_id":"0011","offset":1}]}`
	want := jsonAnswer + `{"v":1,"frames":[` + runAnswer + `,{"reason":"no_file"}]}` + "\n"
	refused := "text/plain; charset=utf-8\n"
	for _, tt := range []struct {
		name, method, path string
		body               io.Reader
		headers            []string
		want               string
	}{
		{"as it is", "POST", "/v1/symbolize", strings.NewReader(request), nil, want},
		{"in chunks", "POST", "/v1/symbolize", unsized{strings.NewReader(request)}, []string{"Content-Type", "application/json"}, want},
		{"gzip", "POST", "/v1/symbolize", gzipped(request), []string{"Content-Encoding", "gzip"}, want},
		{"nothing", "POST", "/v1/symbolize", nil, nil, "400 " + refused + "the JSON in the body is missing or incomplete\n"},
		{"a mistake", "POST", "/v1/symbolize", strings.NewReader(`{"frames":[{"offset":"x"}]}`), nil,
			"400 " + refused + "frames[0].offset: \"x\" is not a number from 0 to 2^64-1\n"},
		{"too much", "POST", "/v1/symbolize", strings.NewReader(`{"frames":[` + strings.Repeat(runFrame+",", batch.MaxFrames) + runFrame + `]}`), nil,
			"413 " + refused + "the request has more than 10000 frames; send it in several requests\n"},
		{"another method", "GET", "/v1/symbolize", nil, nil, "405 " + refused + "send the request with POST, as JSON\nheader Allow: POST\n"},
		{"another encoding", "POST", "/v1/symbolize", strings.NewReader(request), []string{"Content-Encoding", "br"},
			"415 " + refused + "the encoding \"br\" of the body is unknown; use gzip or zstd, or none\nheader Accept-Encoding: gzip, zstd\n"},
		{"a page of another site", "POST", "/v1/symbolize", strings.NewReader(request), []string{"Origin", "https://evil.example"},
			"403 " + refused + "pages of \"https://evil.example\" may not use this listener; to allow these pages, add their host to the key hosts of this listener in the configuration\n"},
		{"a path below", "POST", "/v1/symbolize/", strings.NewReader(request), nil, "404 " + refused + "no pipeline has the path \"/v1/symbolize/\"; POST to /v1/symbolize\n"},
		{"a protocol that is off", "POST", "/symbolicate/v5", strings.NewReader(request), nil, "404 " + refused + "no pipeline has the path \"/symbolicate/v5\"; POST to /v1/symbolize\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, post(t, tt.method, url+tt.path, tt.body, tt.headers...)); diff != "" {
				t.Error(diff)
			}
		})
	}
	owesNothing(t, d)
}

func TestTheServiceAnswersOtherProtocols(t *testing.T) {
	d, url := answering(t, "mozilla: true, symbolicator: true", "")
	for path, request := range map[string]string{
		"/symbolicate/v5": `{"jobs":[{"memoryMap":[["server","17CC43DA677C8642DC64206EEBED748F0"]],"stacks":[[[0,16342]]]}]}`,
		"/symbolicate":    `{"stacktraces":[{"frames":[{"instruction_addr":"0x13fd6"}]}],"modules":[{"type":"elf","debug_id":"17cc43da-677c-8642-dc64-206eebed748f","image_addr":"0x10000"}]}`,
		"/v1/symbolize":   "off",
	} {
		want := map[string]string{
			"/symbolicate/v5": jsonAnswer + `{"results":[{"stacks":[[{"frame":0,"module_offset":"0x3fd6","module":"server","function":"Server::run()","function_offset":"0x26","file":"/src/server/server.cc","line":47}]],"found_modules":{"server/17CC43DA677C8642DC64206EEBED748F0":true}}]}` + "\n",
			"/symbolicate": jsonAnswer + `{"status":"complete","stacktraces":[{"frames":[{"status":"symbolicated","original_index":0,"instruction_addr":"0x13fd6","sym_addr":"0x13fb0","symbol":"_ZN6Server3runEv","function":"Server::run()","filename":"server/server.cc","abs_path":"/src/server/server.cc","lineno":47}]}],` +
				`"modules":[{"debug_status":"found","type":"elf","debug_id":"17cc43da-677c-8642-dc64-206eebed748f","image_addr":"0x10000"}]}` + "\n",
			"/v1/symbolize": "404 text/plain; charset=utf-8\nno pipeline has the path \"/v1/symbolize\"; POST to /symbolicate or /symbolicate/v5\n",
		}[path]
		if diff := cmp.Diff(want, post(t, "POST", url+path, strings.NewReader(request))); diff != "" {
			t.Error(diff)
		}
	}
	owesNothing(t, d)
}

// owesNothing fails the test if memory of ended requests is not released.
func owesNothing(t *testing.T, d *Daemon) {
	t.Helper()
	var all, bytes int64
	if !testenv.Wait(func() bool {
		l, c := d.house.ledger, d.house.contexts
		l.mu.Lock()
		c.mu.Lock()
		defer l.mu.Unlock()
		defer c.mu.Unlock()
		all, bytes = l.all, c.bytes
		return all == 0 && bytes == 0 && len(l.peers) == 0
	}) {
		t.Errorf("requests that have ended hold %d bytes, and %d of the account of logs", all, bytes)
	}
}

func TestReloadsTurnTheService(t *testing.T) {
	addr, dir := freeAddress(t), t.TempDir()
	url := "http://" + addr
	pipeline := "pipelines:\n" + strings.ReplaceAll(peerPipeline, "ADDR", addr)
	both := serviceConfig(addr, "symbolize: true", "") + pipeline
	d, _ := started(t, configuration(t, dir, both), Options{})
	request := `{"frames":[` + runFrame + `]}`
	answer := jsonAnswer + `{"v":1,"frames":[` + runAnswer + `]}` + "\n"
	look := func(name, want string) {
		t.Helper()
		if got := post(t, "POST", url+"/v1/symbolize", strings.NewReader(request)); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	reload := func(text string) {
		t.Helper()
		if err := d.Reload(configuration(t, dir, text)); err != nil {
			t.Fatal(err)
		}
	}
	look("both", answer)
	if got := post(t, "POST", url+"/v1/filter", strings.NewReader("plain\n")); !strings.Contains(got, "plain\n") {
		t.Errorf("the input answers %s", got)
	}
	reload(strings.Replace(both, "symbolize: true", "symbolize: true, wait: 1s", 1))
	look("another wait", answer)
	reload(strings.Replace(both, "debug_file_directories: [../../testdata/debug]", "debug_file_directories: [DIR]", 1))
	look("other symbols", jsonAnswer+`{"v":1,"frames":[{"reason":"no_file"}]}`+"\n")
	reload(strings.Replace(both, "service: {listen", "#", 1))
	look("no service", "404 text/plain; charset=utf-8\nno pipeline has the path \"/v1/symbolize\"; POST to /v1/filter\n")
	reload(serviceConfig(addr, "symbolize: true", ""))
	look("no pipeline", answer)
}

// hanging starts a server that never answers. It closes begun at the first request.
func hanging(t *testing.T) (url string, begun chan struct{}) {
	begun, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(begun) })
		<-end
	}))
	t.Cleanup(func() {
		close(end)
		server.Close()
	})
	return server.URL, begun
}

func TestRequestsToTheServiceDoNotWaitForEachOther(t *testing.T) {
	behind, begun := hanging(t)
	d, url := answering(t, "symbolize: true, wait: 10m", ", debuginfod_urls: [\""+behind+"\"]")

	slow, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	waits := `{"frames":[` + runFrame + `,{"build_id":"00112233","offset":1}]}`
	fmt.Fprintf(slow, "POST /v1/symbolize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(waits), waits)
	<-begun // the request waits for the debuginfod server

	deaf, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	frame := `{"build_id":"` + serverID + `","offset":"0x3fa6"}`
	large := `{"frames":[` + strings.Repeat(frame+",", batch.MaxFrames-1) + frame + `]}`
	fmt.Fprintf(deaf, "POST /v1/symbolize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(large), large)
	if _, err := bufio.NewReaderSize(deaf, 16).ReadByte(); err != nil { // the answer has begun, and the client stops reading
		t.Fatal(err)
	}

	got := post(t, "POST", url+"/v1/symbolize", strings.NewReader(`{"frames":[`+runFrame+`]}`))
	if want := jsonAnswer + `{"v":1,"frames":[` + runAnswer + `]}` + "\n"; got != want {
		t.Errorf("got %s", got)
	}
	slow.Close()
	deaf.Close()
	owesNothing(t, d)
}

func TestRequestsWaitForServersForATime(t *testing.T) {
	behind, _ := hanging(t)
	_, url := answering(t, "symbolize: true, wait: 20ms", ", debuginfod_urls: [\""+behind+"\"]")
	got := post(t, "POST", url+"/v1/symbolize", strings.NewReader(`{"frames":[{"build_id":"00112233","offset":1}]}`))
	if want := jsonAnswer + `{"v":1,"frames":[{"reason":"pending"}]}` + "\n"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestTheServiceEndsWithTheDaemon(t *testing.T) {
	behind, begun := hanging(t)
	addr := freeAddress(t)
	c := configuration(t, t.TempDir(), serviceConfig(addr, "symbolize: true, wait: 10m", ", debuginfod_urls: [\""+behind+"\"]"))
	_, stop := started(t, c, Options{})
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Post("http://"+addr+"/v1/symbolize", "application/json", strings.NewReader(`{"frames":[{"build_id":"00112233","offset":1}]}`))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		answer <- string(text)
	}()
	<-begun
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := <-answer; got != `{"v":1,"frames":[{"reason":"pending"}]}`+"\n" {
		t.Errorf("got %q", got)
	}
}

func TestRequestsToTheServiceShareTheAccountOfLogs(t *testing.T) {
	d, url := answering(t, "symbolize: true", "}\nlimits: {context_bytes: 1MiB")
	l, c := d.house.ledger, d.house.contexts
	if one := l.open("a"); !one.Take(256<<10) || one.Take(1) {
		t.Error("one peer takes more or less than a quarter")
	} else if two := l.open("b"); !two.Take(100<<10) || !two.Take(156<<10) || two.Take(1) {
		t.Error("the second peer takes more or less than a quarter")
	} else if three := l.open("c"); three.Take(1) {
		t.Error("three peers take more than half")
	} else {
		one.close()
		if !three.Take(1) {
			t.Error("memory that was returned is not granted")
		}
		two.close()
		three.close()
	}
	owesNothing(t, d)
	c.borrow(1 << 20)
	got := post(t, "POST", url+"/v1/symbolize", strings.NewReader(`{"frames":[`+runFrame+`]}`))
	want := "503 text/plain; charset=utf-8\nlimits.context_bytes leaves no memory for this request; send the request again later, or raise the limit\nheader Retry-After: 1\n"
	if got != want {
		t.Errorf("got %s", got)
	}
	c.borrow(-1 << 20)
	owesNothing(t, d)
}
