package daemon

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const journalPipeline = "  journal: {input: {journal_upload: \"ADDR\"}, filter: {module_lines: none}, output: {file: DIR/out.log}}\n"

func journalEntry(pid, message string) string {
	return "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1700000000123456\n_BOOT_ID=b\n_MACHINE_ID=m\n_PID=" + pid +
		"\n_HOSTNAME=host\nSYSLOG_IDENTIFIER=app\nMESSAGE=" + message + "\n\n"
}

const (
	journalModule = "{{{module:0:one.so:elf:aabb}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}}"
	journalFrame  = "at {{{pc:0x1234:pc}}}"
	linePrefix    = "2023-11-14T22:13:20.123456Z host app[7]: "
)

// uploaded sends a journal as systemd-journal-upload does, and returns the response as text.
func uploaded(t *testing.T, url, body string) string {
	t.Helper()
	return post(t, "POST", url, unsized{strings.NewReader(body)}, "Content-Type", "application/vnd.fdo.journal", "Expect", "100-continue")
}

const uploadDone = "202 text/plain; charset=utf-8\nOK.\n"

func TestUploadsOfJournalsAreAcknowledgedWhenTheyAreWritten(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	c := configuration(t, dir, "state: DIR/state\n"+webConfig(addr, journalPipeline))
	for i := range 2 { // the second daemon continues with the saved processes
		_, stop := started(t, c, Options{})
		url := "http://" + addr + "/upload"
		var want string
		if i == 0 {
			if got := uploaded(t, url, journalEntry("7", "first")+journalEntry("7", journalModule)); got != uploadDone {
				t.Fatalf("got %q", got)
			}
			want = linePrefix + "first\n"
		}
		if got := uploaded(t, url, journalEntry("7", journalFrame)); got != uploadDone {
			t.Fatalf("got %q", got)
		}
		want += linePrefix + "at one.so+0x234 (BuildId: aabb)\n"
		got, err := os.ReadFile(filepath.Join(dir, "out.log"))
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Fatalf("%v (-want +got)\n%s", err, diff)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, "out.log"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUploadsThatAreNotJournalsAreRefused(t *testing.T) {
	_, url, dir := serving(t, strings.ReplaceAll(journalPipeline, "\"ADDR\"", "\"ADDR\", path: /journals"))
	const journal = "application/vnd.fdo.journal"
	for _, test := range []struct{ name, method, path, contentType, body, want string }{
		{"the path of the URL alone", "POST", "/journals", journal, journalEntry("7", "one"), uploadDone},
		{"with the sender's own", "POST", "/journals/upload", journal, journalEntry("7", "two"), uploadDone},
		{"another type", "POST", "/journals/upload", "text/plain", "x", "415 text/plain; charset=utf-8\nContent-Type is \"text/plain\"; send a journal in the export format, as application/vnd.fdo.journal\nheader Accept-Encoding: gzip, zstd\n"},
		{"another method", "PUT", "/journals/upload", journal, "x", "405 text/plain; charset=utf-8\nthis path accepts journals from systemd-journal-upload, by POST\nheader Allow: POST, PUT\n"},
		{"a cut entry", "POST", "/journals/upload", journal, journalEntry("7", "three") + "__CURSOR=1\nMESSAGE=fo", "400 text/plain; charset=utf-8\nthe upload ends within an entry; send the upload again\n"},
		{"another format", "POST", "/journals/upload", journal, journalEntry("7", "four") + "hello\n", "400 text/plain; charset=utf-8\n\"hello\" is not a field name in journald's export format; the entries before the damaged one were written\n"},
		{"a binary entry", "POST", "/journals/upload", journal, "MESSAGE\n\x04\x00\x00\x00\x00\x00\x00\x00\x1b[ma\n\n", uploadDone},
	} {
		if diff := cmp.Diff(test.want, post(t, test.method, url+test.path, strings.NewReader(test.body), "Content-Type", test.contentType)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
	want := linePrefix + "one\n" + linePrefix + "two\n" + linePrefix + "three\n" + linePrefix + "four\n\x1b[ma\n"
	await(t, filepath.Join(dir, "out.log"), want)
}

func TestBrokenUploadsLeaveTheNextOneWhole(t *testing.T) {
	_, url, dir := serving(t, journalPipeline)
	url += "/upload"
	r, w := io.Pipe()
	request, err := http.NewRequest("POST", url, r)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/vnd.fdo.journal")
	done := make(chan error, 1)
	go func() {
		got, err := http.DefaultClient.Do(request)
		if err == nil {
			got.Body.Close()
		}
		done <- err
	}()
	io.WriteString(w, journalEntry("7", journalModule)+journalEntry("7", "before")+"MESSAGE=cut ")
	await(t, filepath.Join(dir, "out.log"), linePrefix+"before\n")
	w.CloseWithError(io.ErrClosedPipe)
	if err := <-done; err == nil {
		t.Error("a broken upload is acknowledged")
	}
	if got := uploaded(t, url, journalEntry("7", journalFrame)); got != uploadDone {
		t.Errorf("got %q", got)
	}
	await(t, filepath.Join(dir, "out.log"), linePrefix+"before\n"+linePrefix+"at one.so+0x234 (BuildId: aabb)\n")
}

func TestUploadsAtOnceKeepTheirLinesWhole(t *testing.T) {
	_, url, dir := serving(t, journalPipeline)
	const machines, entries = 4, 200
	done := make(chan string, machines)
	for m := range machines {
		pid := string(rune('1' + m))
		go func() {
			var body bytes.Buffer
			body.WriteString(journalEntry(pid, strings.ReplaceAll(journalModule, "one", "m"+pid)))
			for range entries {
				body.WriteString(journalEntry(pid, journalFrame))
			}
			got, err := http.Post(url+"/upload", "application/vnd.fdo.journal", &slow{&body})
			if err != nil {
				done <- err.Error()
				return
			}
			got.Body.Close()
			done <- got.Status
		}()
	}
	for range machines {
		if got := <-done; got != "202 Accepted" {
			t.Error(got)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "out.log"))
	if err != nil {
		t.Fatal(err)
	}
	for m := range machines {
		pid := string(rune('1' + m))
		line := strings.ReplaceAll(linePrefix, "7", pid) + "at m" + pid + ".so+0x234 (BuildId: aabb)\n"
		if n := strings.Count(string(got), line); n != entries {
			t.Errorf("%d lines of process %s, want %d", n, pid, entries)
		}
	}
}

// A slow returns few bytes at a time, so that reads end within entries.
type slow struct{ b *bytes.Buffer }

func (s *slow) Read(p []byte) (int, error) {
	time.Sleep(10 * time.Microsecond)
	return s.b.Read(p[:min(len(p), 333)])
}
