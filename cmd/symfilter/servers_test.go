package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// That servers are not asked for all build IDs is reported once when it begins, and with their
// number at the end.
func TestBuildIDsThatAreNotAskedForAreCounted(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, tt := range []struct {
		ids  int
		want []string // how lines begin
	}{
		{300, []string{"symfilter: asking http"}},
		{2500, []string{"symfilter: asking http", "symfilter: the log names more than 1000 build IDs at once: from now on servers are asked for 20 new ones per second",
			"symfilter: servers were not asked for N build IDs; run again to ask for more"}},
	} {
		env := map[string]string{"DEBUGINFOD_URLS": server.URL, "DEBUGINFOD_CACHE_PATH": t.TempDir()}
		var stderr strings.Builder
		var c config
		client, err := c.client(func(name string) string { return env[name] }, &diagnostics{w: &stderr}, &statusLine{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range tt.ids {
			id, err := buildid.Parse(fmt.Appendf(nil, "%016x", n+1))
			if err != nil {
				t.Fatal(err)
			}
			if f, err := client.Find(t.Context(), buildid.Query{ID: id, Kind: buildid.Alt}, nil); err == nil {
				f.Close()
				t.Fatal("a file that nobody has was found")
			}
		}
		left := client.Unasked()
		c.close()
		var got []string
		for i, line := range strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n") {
			if line = strings.Replace(line, fmt.Sprintf(" %d build", left), " N build", 1); i < len(tt.want) && strings.HasPrefix(line, tt.want[i]) {
				line = tt.want[i]
			}
			if line != "" {
				got = append(got, line)
			}
		}
		if diff := cmp.Diff(got, tt.want); diff != "" || (left > 0) != (tt.ids > 1000) {
			t.Errorf("%d IDs: %d were not asked for (-got +want):\n%s", tt.ids, left, diff)
		}
	}
}
