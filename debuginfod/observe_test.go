package debuginfod

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// Each request that has ended must be observed once, with its server, its outcome and its bytes.
func TestRequestsAreObserved(t *testing.T) {
	t.Parallel()
	id := testID(1)
	body := elfFile(id, 100_000)
	var asked sync.WaitGroup // the slow server is asked before the good one answers
	asked.Add(1)
	slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Done()
		<-r.Context().Done()
	})
	good := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Wait()
		w.Write(body)
	})
	empty := serve(t, http.NotFound)
	broken := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) })
	for _, test := range []struct {
		name    string
		servers []*fake
		want    []string
	}{
		{"one is first", []*fake{slow, good}, []string{"canceled", "found"}},
		{"no such file", []*fake{empty}, []string{"not_there", "not_there"}}, // debug file and program
		{"refused", []*fake{empty, broken}, []string{"failed", "failed", "not_there", "not_there"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var mu sync.Mutex
			var all []Request
			var urls []string
			for _, s := range test.servers {
				urls = append(urls, s.URL)
			}
			c := newClient(t, Options{RetryLimit: -1, Observe: func(r Request) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, r)
			}}, urls...)
			if f, err := c.Find(t.Context(), buildid.Query{ID: id}, nil); err == nil {
				f.Close()
			}
			c.Close() // waits for the requests
			var got []string
			for _, r := range all {
				got = append(got, string(r.Outcome))
				if (r.Bytes == int64(len(body))) != (r.Outcome == Found) || r.Took < 0 || !strings.HasPrefix(r.Server, "http://127.0.0.1:") {
					t.Errorf("got %+v", r)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
