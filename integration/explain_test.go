//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplainSaysWhatToDoNext(t *testing.T) {
	need(t, "gcc", "strip")
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sh := func(line string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", line)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	write("shop.c", "static int __attribute__((noinline)) price(int n) { return n * 3 + 1; }\nint pay(int n) { return price(n) + 1; }\n")
	const link = "gcc -g -O1 -fPIC -shared -nostdlib shop.c -Wl,--build-id="
	sh(link + "0x0a0a0a0a -o found.so")
	sh(link + "0x0b0b0b0b -o other.so && strip other.so")
	sh(link + `0x0e0e0e0e -o stripped.so -Xlinker '--package-metadata={"type":"deb","name":"libshop1","version":"1.2-3","architecture":"amd64"}' && strip stripped.so`)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/0d0d0d0d/") {
			http.Error(w, "the disk is full", http.StatusInternalServerError)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()

	var log strings.Builder
	price := strings.Fields(run(t, nil, "sh", "-c", "nm "+filepath.Join(dir, "found.so")+" | grep ' t price'"))[0]
	for i, module := range []struct{ name, id string }{
		{filepath.Join(dir, "found.so"), "0a0a0a0a"},
		{"/nowhere/lost.so", "0c0c0c0c"},
		{filepath.Join(dir, "other.so"), "0f0f0f0f"},
		{"unlucky.so", "0d0d0d0d"},
		{filepath.Join(dir, "stripped.so"), "0e0e0e0e"},
	} {
		fmt.Fprintf(&log, "{{{module:%d:%s:elf:%s}}}\n{{{mmap:%#x:0x10000:load:%d:rx:0x0}}}\n", i, module.name, module.id, (i+1)<<16, i)
	}
	for i := range 5 {
		fmt.Fprintf(&log, "{{{bt:%d:0x%x%s:pc}}}\n", i, i+1, price[len(price)-4:])
	}
	cmd := exec.Command(command, "--explain", "--no-default-debug-directories", "--debug-file-directory", filepath.Join(dir, "tree"))
	os.Mkdir(filepath.Join(dir, "tree"), 0o777)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+server.URL, "DEBUGINFOD_RETRY_LIMIT=0", "DEBUGINFOD_CACHE_PATH="+filepath.Join(dir, "cache"))
	cmd.Stdin = strings.NewReader(log.String())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout.String(), "price") {
		t.Errorf("the module that is there was not resolved:\n%s", stdout.String())
	}
	got := strings.NewReplacer(dir, "$DIR", server.URL, "$SERVER", strings.TrimPrefix(server.URL, "http://"), "$HOST").Replace(stderr.String())
	golden := filepath.Join("testdata", "explain.golden")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, string(want)); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
