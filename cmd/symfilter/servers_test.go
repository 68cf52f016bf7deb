package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// If a server lacks the file, a server that is configured later must still be asked. The doctor
// must ask each server again.
func TestTheMissOfAServerIsNotThatOfAnother(t *testing.T) {
	const id = "eecd138796b4297ca7ee7bb08854e1173fee4bff"
	file, err := os.ReadFile(filepath.Join("..", "..", "testdata", "debug", ".build-id", id[:2], id[2:]+".debug"))
	if err != nil {
		t.Fatal(err)
	}
	var later atomic.Bool // the first server has the file now
	serve := func(has func() bool) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !has() || !strings.HasSuffix(r.URL.Path, id+"/debuginfo") {
				http.NotFound(w, r)
				return
			}
			w.Write(file)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	first, second := serve(later.Load), serve(func() bool { return true })
	cache := t.TempDir()
	if err := os.Chmod(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(cache, urls string, args ...string) (stdout, stderr string) {
		cmd := exec.Command(os.Args[0], append(args, "--no-default-debug-directories", "--no-index", "--no-sandbox")...)
		cmd.Env = append(os.Environ(), asCommand+"=1", "DEBUGINFOD_CACHE_PATH="+cache, "DEBUGINFOD_URLS="+urls)
		var out, errs strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("{{{module:0:libledger.so:elf:"+id+"}}}\n{{{mmap:0x1000:0x8000:load:0:rx:0x1000}}}\n{{{pc:0x1a25}}}\n"), &out, &errs
		cmd.Run() // the output is checked instead
		return out.String(), errs.String()
	}
	const unknown, known = "0x1a25: ?? (no debug file)", "ledger::Book::close() at "
	check := func(what, got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: got\n%s\nwant %q", what, got, w)
			}
		}
	}
	out, _ := run(cache, first, "addr", id, "1a25")
	check("a server without the file", out, unknown)
	out, errs := run(cache, first, "addr", id, "1a25")
	check("the same again", out+errs, unknown, "/debuginfo: "+first+" had no such file ", " ago; this answer is kept for ", " more, or until this file is removed\n",
		"symfilter doctor "+id+" searches again")
	_, errs = run(cache, first)
	check("a log", errs, "; servers were not asked again for 1 build ID that they recently did not have; symfilter doctor LOG asks again; ")
	later.Store(true)
	out, _ = run(cache, first, "addr", id, "1a25")
	check("the server has got the file", out, unknown)
	out, _ = run(t.TempDir(), first+" "+second, "addr", id, "1a25")
	check("another cache", out, known)
	out, _ = run(cache, first, "doctor", id)
	check("the doctor", out, ": has the file\n", "debuginfo holds debug information\n")
	out, _ = run(cache, first, "addr", id, "1a25")
	check("after the doctor", out, known)

	later.Store(false)
	if err := os.RemoveAll(cache); err != nil {
		t.Fatal(err)
	}
	run(cache, first, "addr", id, "1a25")
	out, _ = run(cache, first+" "+second, "addr", id, "1a25")
	check("a server more", out, known)
}

func TestBuildIDsThatAreNotAskedForAreCounted(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, tt := range []struct {
		ids  int
		want []string // how lines begin
	}{
		{300, []string{"symfilter: asking http"}},
		{2500, []string{"symfilter: asking http", "symfilter: the log names more than 1000 build IDs at once: from now on servers are asked for at most 20 new IDs per second",
			"symfilter: servers were not asked for N build IDs; to ask for more, run symfilter again"}},
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
		left := unasked(client)
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

// The standard log must not be printed: net/http logs there what a server sends after its response.
func TestTheStandardLogIsNotPrinted(t *testing.T) {
	const id = "eecd138796b4297ca7ee7bb08854e1173fee4bff"
	sent := make(chan bool, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		conn.Write([]byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
		io.WriteString(conn, strings.Repeat("and more\n", 1000))
		select {
		case sent <- true:
		default:
		}
		io.Copy(io.Discard, conn)
	}))
	defer s.Close()
	for range 5 { // the client reads the rest while the connection is idle, unless the machine is busy
		cmd := exec.Command(os.Args[0], "--quiet", "--no-default-debug-directories", "--no-index", "--no-sandbox")
		cmd.Env = append(os.Environ(), asCommand+"=1", "DEBUGINFOD_CACHE_PATH="+t.TempDir(), "DEBUGINFOD_URLS="+s.URL)
		cmd.Stdin = strings.NewReader("{{{module:0:libledger.so:elf:" + id + "}}}\n{{{mmap:0x1000:0x8000:load:0:rx:0x1000}}}\n{{{pc:0x1a25}}}\n")
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil || errs.Len() > 0 {
			t.Fatalf("got %v, %q", err, errs.String())
		}
		<-sent
	}
}
