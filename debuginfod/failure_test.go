package debuginfod

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each unusable server must be reported once. A server that cannot be reached must be reported
// before the request is retried. A server that answers, even only after a retry, that it has no
// file must not be reported.
func TestTheFirstFailureOfAServerIsReported(t *testing.T) {
	t.Parallel()
	gone := serve(t, status(404))
	gone.stop()
	var busy atomic.Int64
	servers := map[string]string{
		"refuses": gone.URL,
		"unknown": "http://unknown.test",
		"failing": serve(t, status(500)).URL,
		"a miss":  serve(t, status(404)).URL,
		"recovers": serve(t, func(w http.ResponseWriter, r *http.Request) {
			if busy.Add(1) == 1 {
				w.WriteHeader(503)
				return
			}
			w.WriteHeader(404)
		}).URL,
	}
	var mu sync.Mutex
	var got []string
	var urls []string
	for _, url := range servers {
		urls = append(urls, url)
	}
	c := newClient(t, Options{RetryLimit: 1, FirstFailure: func(server, reason string) {
		mu.Lock()
		defer mu.Unlock()
		for name, url := range servers {
			server = strings.Replace(server, url, name, 1)
		}
		got = append(got, server+": "+reason)
	}}, urls...)
	dial := c.direct.DialContext
	c.direct.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if host, _, _ := net.SplitHostPort(addr); host == "unknown.test" {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return dial(ctx, network, addr)
	}
	for n := range 3 {
		find(t, c, query(n+1))
	}
	slices.Sort(got)
	want := []string{
		"failing: 500: cannot answer now",
		"refuses: refuses connections",
		"unknown: its host name has no address: unknown.test",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// A fault of this machine that prevents requests or storing, such as an unusable headers file, must
// be reported, too. The operator would otherwise believe that the servers have no file.
func TestFailuresOfThisMachineAreReported(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, sends(elfFile(testID(1), 1000)))
	tests := []struct {
		o    Options
		want string
	}{
		{Options{HeadersFile: dir + "/none"}, "not asked: DEBUGINFOD_HEADERS_FILE: stat " + dir + "/none: no such file or directory"},
		{Options{HeadersFile: dir}, "not asked: DEBUGINFOD_HEADERS_FILE: " + dir + ": not a regular file"},
		{Options{HeadersFile: put(t, dir, "headers", []byte("secret"), 0o600)}, `not asked: DEBUGINFOD_HEADERS_FILE: line 1 is not a header: want "Name: value"`},
		{Options{CacheDir: dir + "/headers/cache"}, "the file could not be stored: no such file or directory"},
	}
	for _, tt := range tests {
		var got []string
		tt.o.FirstFailure = func(_, reason string) { got = append(got, reason) }
		if tt.o.CacheDir != "" {
			t.Setenv("TMPDIR", dir+"/none")
		}
		c := newClient(t, tt.o, s.URL)
		for range 2 {
			if _, _, err := find(t, c, query(1)); err == nil {
				t.Errorf("%s: the file is found", tt.want)
			}
		}
		if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
	}
}
