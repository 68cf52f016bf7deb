package debuginfod_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
)

// The first search fetches a debug file from the server. The second search finds it in the cache.
func ExampleClient_Find() {
	const id = "779e1ed32e11627838c3d1658cabab0af2a008bd"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("a request for", path.Base(path.Dir(r.URL.Path)), path.Base(r.URL.Path))
		http.ServeFile(w, r, "../testdata/debug/.build-id/"+id[:2]+"/"+id[2:]+".debug")
	}))
	defer server.Close()
	cache, err := os.MkdirTemp("", "debuginfod-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(cache)

	client, err := debuginfod.New(debuginfod.Options{URLs: []string{server.URL}, CacheDir: cache})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	want, err := buildid.Parse([]byte(id))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		file, err := client.Find(context.Background(), buildid.Query{ID: want, Kind: buildid.Debug}, func(buildid.Attempt) {})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("found:", file.Where() != "")
		file.Close()
	}
	// Output:
	// a request for 779e1ed32e11627838c3d1658cabab0af2a008bd debuginfo
	// found: true
	// found: true
}
