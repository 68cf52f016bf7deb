package daemon

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// got returns the status, the body and, if present, the X-Debuginfod-Size of a response.
func got(t *testing.T, method, url string, headers ...string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	text := fmt.Sprintf("%d %s", resp.StatusCode, body)
	if size := resp.Header.Get("X-Debuginfod-Size"); size != "" {
		text = "size " + size + ": " + text
	}
	return text
}

func debugFile(t *testing.T) (path string, data []byte) {
	t.Helper()
	path = filepath.Join("..", "..", "testdata", "debug", ".build-id", serverID[:2], serverID[2:]+".debug")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

// comment returns the expected answer for the section .comment of the debug file, whose offset and
// size are from readelf -S.
func comment(data []byte) string { return fmt.Sprintf("size 106: 200 %s", data[0x14a8:0x14a8+106]) }

func TestDebugFilesAreServed(t *testing.T) {
	_, data := debugFile(t)
	d, url := answering(t, "debuginfod: true", "")
	url += buildIDPath
	whole := fmt.Sprintf("size %d: 200 %s", len(data), data)
	const absent, paths = "404 the file was not found\n", "404 unknown path: write /buildid/ID/ and then debuginfo, executable, section/NAME or source/PATH\n"
	for _, tt := range []struct {
		name, method, path string
		headers            []string
		want               string
	}{
		{"debug file", "GET", serverID + "/debuginfo", nil, whole},
		{"header alone", "HEAD", serverID + "/debuginfo", nil, fmt.Sprintf("size %d: 200 ", len(data))},
		{"part", "GET", serverID + "/debuginfo", []string{"Range", "bytes=1-3"}, fmt.Sprintf("size %d: 206 ELF", len(data))},
		{"small enough", "GET", serverID + "/debuginfo", []string{"X-Debuginfod-Maxsize", fmt.Sprint(len(data))}, whole},
		{"too large", "GET", serverID + "/debuginfo", []string{"X-DEBUGINFOD-MAXSIZE", "100"}, fmt.Sprintf("406 the file has %d bytes, more than X-Debuginfod-Maxsize\n", len(data))},
		{"the program, which is not here", "GET", serverID + "/executable", nil, absent},
		{"another build", "GET", "0011/debuginfo", nil, absent},
		{"section", "GET", serverID + "/section/.comment", nil, comment(data)},
		{"section that is elsewhere", "GET", serverID + "/section/.text", nil, absent},
		{"no such section", "GET", serverID + "/section/.gdb_index", nil, absent},
		{"source", "GET", serverID + "/source/src/server/server.cc", nil, absent},
		{"a path that leads out", "GET", serverID + "/source/..%2f..%2fetc/passwd", nil, absent},
		{"no ID", "GET", "libc/debuginfo", nil, "404 \"libc\" is not a build ID in hex\n"},
		{"half a byte", "GET", serverID + "0/debuginfo", nil, "404 \"" + serverID + "0\" is not a build ID in hex\n"},
		{"nothing", "GET", "", nil, "404 \"\" is not a build ID in hex\n"},
		{"ID alone", "GET", serverID, nil, paths},
		{"another kind", "GET", serverID + "/symbols", nil, paths},
		{"below a file", "GET", serverID + "/debuginfo/x", nil, paths},
		{"section without a name", "GET", serverID + "/section/", nil, paths},
		{"section with a folder", "GET", serverID + "/section/a/b", nil, paths},
		{"upload", "PUT", serverID + "/debuginfo", nil, "405 only GET and HEAD; files cannot be uploaded\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, got(t, tt.method, url+tt.path, tt.headers...)); diff != "" {
				t.Error(diff)
			}
		})
	}
	owesNothing(t, d)
}

// A behind is a debuginfod server that has files of serverID. It counts requests by path. It
// answers no request before the channel b.may is closed.
type behind struct {
	*httptest.Server
	may chan struct{}

	mu     sync.Mutex
	asked  map[string]int
	chains []string // X-Forwarded-For of the requests
}

func newBehind(t *testing.T) *behind {
	_, data := debugFile(t)
	b := &behind{may: make(chan struct{}), asked: make(map[string]int)}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.asked[r.URL.Path]++
		b.chains = append(b.chains, r.Header.Get("X-Forwarded-For"))
		b.mu.Unlock()
		<-b.may
		switch r.URL.Path {
		case buildIDPath + serverID + "/debuginfo":
			w.Write(data)
		case buildIDPath + serverID + "/source/src/server/server.cc":
			io.WriteString(w, "int main();\n")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(b.Close)
	return b
}

// passingOn returns a configuration of a daemon with a depot at addr, which gets its files from
// servers.
func passingOn(addr, cache string, servers ...string) string {
	return "symbols: {no_default_debug_directories: true, cache_directory: DIR/" + cache + ", debuginfod_urls: [\"" + strings.Join(servers, `", "`) +
		"\"]}\nservice: {listen: \"" + addr + "\", debuginfod: true}\n"
}

func TestServersBehindAreAskedOnceForAll(t *testing.T) {
	_, data := debugFile(t)
	b := newBehind(t)
	addr := freeAddress(t)
	started(t, configuration(t, t.TempDir(), passingOn(addr, "cache", b.URL)), Options{})
	url := "http://" + addr + buildIDPath + serverID
	var all sync.WaitGroup
	const clients = 8
	answers := make([]string, 2*clients)
	for i := range clients {
		all.Go(func() { answers[2*i] = got(t, "GET", url+"/debuginfo") })
		all.Go(func() { answers[2*i+1] = got(t, "GET", url+"/source/src/server/server.cc") })
	}
	close(b.may)
	all.Wait()
	for i := range clients {
		if want := fmt.Sprintf("size %d: 200 %s", len(data), data); answers[2*i] != want {
			t.Errorf("got %.100q", answers[2*i])
		}
		if want := "size 12: 200 int main();\n"; answers[2*i+1] != want {
			t.Errorf("got %.100q", answers[2*i+1])
		}
	}
	if got, want := got(t, "GET", url+"/section/.comment"), comment(data); got != want {
		t.Errorf("got %q", got)
	}
	for range 2 { // the second answer comes from the negative cache
		if got, want := got(t, "GET", url+"/executable"), "404 the file was not found\n"; got != want {
			t.Errorf("got %q", got)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	want := map[string]int{buildIDPath + serverID + "/debuginfo": 1, buildIDPath + serverID + "/source/src/server/server.cc": 1, buildIDPath + serverID + "/executable": 1}
	if diff := cmp.Diff(want, b.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for _, chain := range b.chains {
		if !strings.HasPrefix(chain, "_symfilterd-") || strings.Contains(chain, ",") {
			t.Errorf("X-Forwarded-For is %q", chain)
		}
	}
}

// If a server behind the depot fails, the depot must respond with 503: a 404 would make clients
// remember that the file does not exist.
func TestAFailureBehindIsNoMiss(t *testing.T) {
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "overloaded", http.StatusInternalServerError)
	}))
	t.Cleanup(b.Close)
	addr := freeAddress(t)
	started(t, configuration(t, t.TempDir(), passingOn(addr, "cache", b.URL)), Options{})
	for _, file := range []string{"/debuginfo", "/executable", "/section/.comment", "/source/a.c"} {
		if got, want := got(t, "GET", "http://"+addr+buildIDPath+serverID+file), "503 the upstream debuginfod servers are not available; retry later\n"; got != want {
			t.Errorf("%s: got %q", file, got)
		}
	}
}

func TestLoopsOfServersEnd(t *testing.T) {
	b := newBehind(t)
	close(b.may)
	dir, first, second := t.TempDir(), freeAddress(t), freeAddress(t)
	started(t, configuration(t, dir, passingOn(first, "first", "http://"+second)), Options{})
	started(t, configuration(t, dir, passingOn(second, "second", "http://"+first, b.URL)), Options{})
	_, data := debugFile(t)
	whole := fmt.Sprintf("size %d: 200 %s", len(data), data)
	const absent = "404 the file was not found\n"
	for _, addr := range []string{first, second} {
		if got := got(t, "GET", "http://"+addr+buildIDPath+"00112233/debuginfo"); got != absent {
			t.Errorf("got %q", got)
		}
	}
	url := "http://" + first + buildIDPath + serverID + "/debuginfo"
	if got := got(t, "GET", url, "X-Forwarded-For", "1, 2, 3, 4, 5, 6, 7, 8"); got != absent {
		t.Errorf("after eight servers got %.100q", got)
	}
	if got := got(t, "GET", url, "X-Forwarded-For", strings.Repeat("1", maxChain+1)); got != absent {
		t.Errorf("after a long chain got %.100q", got)
	}
	if got := got(t, "GET", url, "X-Forwarded-For", "1, 2, 3, 4, 5, 6"); got != whole {
		t.Errorf("after six servers got %.100q", got)
	}
	if got := got(t, "GET", url, "X-Forwarded-For", "1, 2, 3, 4, 5, 6, 7, 8"); got != whole {
		t.Errorf("after it was fetched got %.100q", got)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, chain := range b.chains {
		if n := strings.Count(chain, "_symfilterd-"); n < 1 || n > 2 {
			t.Errorf("X-Forwarded-For is %q", chain)
		}
	}
}

func TestAHangingServerHoldsUpNoOtherFile(t *testing.T) {
	b := newBehind(t)
	d, url := answering(t, "debuginfod: true, symbolize: true, wait: 10m", ", debuginfod_urls: [\""+b.URL+"\"]")
	var all sync.WaitGroup
	all.Go(func() {
		if got := got(t, "GET", url+buildIDPath+"00112233/debuginfo"); got != "404 the file was not found\n" {
			t.Errorf("got %q", got)
		}
	})
	testenv.Until(t, "the server behind is asked", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.asked) > 0
	})
	_, data := debugFile(t)
	if got := got(t, "GET", url+buildIDPath+serverID+"/debuginfo"); !bytes.HasSuffix([]byte(got), data) {
		t.Errorf("got %.100q", got)
	}
	if got := post(t, "POST", url+"/v1/symbolize", strings.NewReader(`{"frames":[`+runFrame+`]}`)); got != jsonAnswer+`{"v":1,"frames":[`+runAnswer+"]}\n" {
		t.Errorf("got %s", got)
	}
	close(b.may)
	all.Wait()
	owesNothing(t, d)
}
