package debuginfod

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
}

func sends(body []byte, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Write(body)
	}
}

// raw answers with bytes from the test and closes the connection.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		conn.Write([]byte(answer))
		conn.Close()
	}
}

// slowly sends a piece of body at each interval, until the client leaves.
func slowly(body []byte, piece int, interval time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for len(body) > 0 {
			n := min(piece, len(body))
			w.Write(body[:n])
			body = body[n:]
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(interval):
			}
		}
	}
}

func zipped(t *testing.T, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, p := range parts {
		z.Write(p)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The download from a server that sends fast enough, but endlessly, must end after MaxTime.
func TestDownloadTakesMaxTimeAtMost(t *testing.T) {
	t.Parallel()
	s := serve(t, slowly(elfFile(testID(1), 200<<20), 256<<10, 20*time.Millisecond))
	c := newClient(t, Options{MaxTime: time.Second}, s.URL)
	within(t, time.Minute, func() {
		_, notes, err := find(t, c, buildid.Query{ID: testID(1)}, s.URL, "S")
		if diff := cmp.Diff(notes, []string{"S: did not finish within 1s"}); diff != "" || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v, notes (-got +want):\n%s", err, diff)
		}
	})
	if got := leftovers(t, c.cache.dir); got != nil {
		t.Errorf("left behind: %q", got)
	}
}

// Each fault of a server must give one note, must not be a miss, and must leave no file. It must
// not prevent the use of another server's file.
func TestFaultsOfAServer(t *testing.T) {
	t.Parallel()
	id := testID(1)
	good := elfFile(id, 200<<10)
	other := elfFile(testID(2), 200<<10)
	zeros := make([]byte, 1<<20)
	var bomb [][]byte
	bomb = append(bomb, good[:100])
	for range 40 {
		bomb = append(bomb, zeros)
	}
	start, empty := zipped(t, good[:100]), bytes.Repeat(zipped(t), 10000)
	tests := []struct {
		name string
		h    http.HandlerFunc
		want string // the note
	}{
		{"wrong credentials", status(401), "401: requires other credentials (DEBUGINFOD_HEADERS_FILE)"},
		{"forbidden", status(403), "403: requires other credentials (DEBUGINFOD_HEADERS_FILE)"},
		{"too big for it", status(406), "the file exceeds 67108864 bytes (DEBUGINFOD_MAXSIZE)"},
		{"too often", status(429), "429: asked too often"},
		{"broken", status(500), "500: cannot answer now"},
		{"overloaded", status(503), "503: cannot answer now"},
		{"teapot", status(418), "answered 418, unlike a debuginfod server"},
		{"part", status(206), "answered 206, unlike a debuginfod server"},
		{"a page", sends([]byte("<html>Please log in</html>"), "Content-Type", "text/html; charset=utf-8"), `sent something other than an ELF file ("text/html")`},
		{"nothing", sends(nil), "sent an empty file"},
		{"another build", sends(other), "sent a wrong file: another build, " + testID(2).String()},
		{"no build", sends(append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 500)...)), "sent a wrong file: the file has no build ID"},
		{"cut off", raw("HTTP/1.1 200 OK\r\nContent-Length: 204800\r\n\r\n" + string(good[:1000])), "sent 1000 of 204800 bytes"},
		{"cut off, without a length", raw("HTTP/1.0 200 OK\r\n\r\n" + string(good[:1000])), "sent a wrong file: incomplete ELF file: its section headers are missing"},
		{"cut off, with elfutils' length", raw("HTTP/1.0 200 OK\r\nX-DEBUGINFOD-SIZE: 204800\r\n\r\n" + string(good[:1000])), "sent 1000 of 204800 bytes"},
		{"cut off in a chunk", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n" + string(good[:1000])), "ended the connection in the middle of its answer"},
		{"cut off in the header", raw("HTTP/1.1 200 OK\r\nContent-"), "its answer is malformed: "},
		{"gibberish", raw("SSH-2.0-OpenSSH_9.2\r\n"), "its answer is malformed: "},
		{"an endless header", raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)), "its answer is malformed: "},
		{"brotli", sends(good, "Content-Encoding", "br"), `sent its answer in the encoding "br", which was not asked for`},
		{"a gzip bomb", sends(zipped(t, bomb...), "Content-Encoding", "gzip"), "sent an answer that inflates to more than 1000 times its size"},
		{"no gzip", sends(good, "Content-Encoding", "gzip"), "its answer is malformed: gzip: invalid header"},
		{"a length beyond the limit", sends(good, "X-DEBUGINFOD-SIZE", "68719476736"), "the file exceeds 67108864 bytes (DEBUGINFOD_MAXSIZE)"},
		{"without an end", func(w http.ResponseWriter, r *http.Request) {
			for w.Write(good); r.Context().Err() == nil; w.Write(zeros) {
			}
		}, "the file exceeds 67108864 bytes (DEBUGINFOD_MAXSIZE)"},
		{"empty gzip members without an end", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			for w.Write(start); r.Context().Err() == nil; w.Write(empty) {
			}
		}, "the file exceeds 67108864 bytes (DEBUGINFOD_MAXSIZE)"},
		{"another protocol", func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"))
			io.Copy(io.Discard, conn) // until the client leaves
			conn.Close()
		}, "answered 101, unlike a debuginfod server"},
		{"drops", slowly(good, 100, 50*time.Millisecond), "sent less than 100 KiB within 3s"},
		{"silence", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "did not answer within 3s"},
		{"redirects in a circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "redirects more than 3 times"},
		{"redirects to a file", sendsTo("file:///etc/passwd"), "redirects to a target other than an http or https URL: refused"},
		{"redirects to nothing", status(302), "redirects to a target other than an http or https URL: refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bad := serve(t, tt.h)
			o := Options{MaxSize: 64 << 20}
			if strings.HasSuffix(tt.want, "within 3s") {
				o.Timeout = 3 * time.Second // enough for the good server on a busy machine
			}
			c := newClient(t, o, bad.URL)
			_, notes, err := find(t, c, buildid.Query{ID: id, Kind: buildid.Executable}, bad.URL, "BAD")
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got error %v, want one that is no miss", err)
			}
			if len(notes) != 1 || !strings.HasPrefix(notes[0], "BAD: "+tt.want) {
				t.Errorf("got notes %q, want one: %q", notes, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %q, want it to say %q", err, tt.want)
			}
			if got := leftovers(t, c.cache.dir); got != nil {
				t.Errorf("left behind: %q", got)
			}

			// The good server answers a little later, so that the bad one could win.
			better := serve(t, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(30 * time.Millisecond)
				sends(good)(w, r)
			})
			both := newClient(t, o, bad.URL, better.URL)
			got, notes, err := find(t, both, buildid.Query{ID: id})
			if err != nil || !bytes.Equal(got, good) {
				t.Errorf("with a good server: got %d bytes, %v, %q; want %d bytes", len(got), err, notes, len(good))
			}
			if got := leftovers(t, both.cache.dir); got != nil {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

func sendsTo(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}
}

func TestServersThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	closed := serve(t, status(404))
	closed.Close()
	tests := []struct{ url, server, want string }{
		{closed.URL, closed.URL, "refuses connections"},
		{"file:///usr/lib/debug", "file:///usr/lib/debug", `refused: "file:" is neither http nor https`},
		{"ftp://me:secret@h/", "ftp://xxxxx@h", `refused: "ftp:" is neither http nor https`},
		{"me:secret@h", "xxxxx@h", "refused: the URL does not begin with http:// or https://"},
		{"me:secret@h:8002/x", "xxxxx@h:8002/x", "refused: the URL does not begin with http:// or https://"},
		{"secret@h", "xxxxx@h", "refused: the URL does not begin with http:// or https://"},
		{"//me:secret@h/", "xxxxx@h", "refused: the URL does not begin with http:// or https://"},
		{"me:sec@secret@h", "xxxxx@h", "refused: the URL does not begin with http:// or https://"},
		{"me:secret://x@h", "xxxxx@h", "refused: the URL does not begin with http:// or https://"},
		{"http:me:secret@h", "xxxxx@h", "refused: the URL does not begin with http:// or https://"},
		{"http://me:secret@/", "http://xxxxx@", "refused: the URL names no host"},
		{"https://h/?token=secret", "https://h/?xxxxx", "refused: the URL has a query or a fragment"},
		{"https://me:secret@h/#secret", "https://xxxxx@h/#xxxxx", "refused: the URL has a query or a fragment"},
		{"http://me:secret@h,https://you:secret@i", "http://xxxxx@i", "refused: separate the URLs with blanks, as for elfutils"},
		{"https://h;http://i", "https://h;http://i", "refused: separate the URLs with blanks, as for elfutils"},
		{"https://h,", "https://h,", "refused: separate the URLs with blanks, as for elfutils"},
		{"nonsense", "nonsense", "refused: the URL does not begin with http:// or https://"},
		{"localhost:8002", "localhost:8002", `refused: "localhost:" is neither http nor https`},
		{"http://", "http:", "refused: the URL names no host"},
		{"http://me:secret@[h", "a server of DEBUGINFOD_URLS", "refused: not a URL"},
		{"http://h/?key=1", "http://h/?xxxxx", "refused: the URL has a query or a fragment"},
		{"http://name.invalid", "http://name.invalid", "its host name "},
	}
	for _, tt := range tests {
		c := newClient(t, Options{}, tt.url)
		_, notes, err := find(t, c, buildid.Query{ID: testID(1)})
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got error %v, want one that is no miss", tt.url, err)
		}
		if len(notes) != 1 || !strings.HasPrefix(notes[0], tt.server+": "+tt.want) {
			t.Errorf("%s: got notes %q, want %q", tt.url, notes, tt.server+": "+tt.want)
		}
		if strings.Contains(fmt.Sprint(notes, err, c.Servers()), "secret") {
			t.Errorf("%s: the password is shown: %q, %v", tt.url, notes, err)
		}
	}
}

func TestServersThatEnforceSignaturesAreNotAsked(t *testing.T) {
	t.Parallel()
	id := testID(1)
	s := serve(t, has(map[string][]byte{debugPath(id): elfFile(id, 0)}))
	c := newClient(t, Options{}, "ima:enforcing", s.URL)
	_, notes, err := find(t, c, buildid.Query{ID: id}, s.URL, "S")
	want := []string{"S: refused: ima:enforcing asks for signatures that symfilter cannot check; write ima:ignore to accept the server's files without this check"}
	if diff := cmp.Diff(notes, want); diff != "" || err == nil {
		t.Errorf("%v (-got +want):\n%s", err, diff)
	}
	if got := s.requests(); got != nil {
		t.Errorf("requests: %q", got)
	}
	c = newClient(t, Options{}, "ima:enforcing", "http://h.invalid", "ima:ignore", s.URL)
	if _, notes, err := find(t, c, buildid.Query{ID: id}); err != nil {
		t.Errorf("behind ima:ignore: %v %q", err, notes)
	}
}

func TestZippedAnswerIsInflated(t *testing.T) {
	t.Parallel()
	id := testID(1)
	want := elfFile(id, 100<<10)
	s := serve(t, sends(zipped(t, want), "Content-Encoding", "gzip", "X-DEBUGINFOD-SIZE", fmt.Sprint(len(want))))
	got, notes, err := find(t, newClient(t, Options{}, s.URL), buildid.Query{ID: id})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, %v %q; want %d", len(got), err, notes, len(want))
	}
}

func TestWrongFileIsFetchedOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, sends(elfFile(testID(2), 0)))
	c := newClient(t, Options{RetryLimit: 2}, s.URL)
	var first []string
	for i := range 3 {
		_, notes, err := find(t, c, buildid.Query{ID: testID(1)})
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got error %v, want one that is no miss", err)
		}
		if i == 0 {
			first = notes
		} else if diff := cmp.Diff(notes, first); diff != "" {
			t.Error("notes of a later run (-got +want):\n" + diff)
		}
	}
	if got := len(s.requests()); got != 1 {
		t.Errorf("got %d requests, want 1", got)
	}
}

// If one server fails, the client must still remember the 404 of the other server. The cache must
// get no miss.
func TestMissOfOneServerIsRememberedBesideAFault(t *testing.T) {
	t.Parallel()
	id := testID(1)
	bad, empty := serve(t, status(500)), serve(t, status(404))
	c := newClient(t, Options{}, bad.URL, empty.URL)
	for range 3 {
		_, notes, err := find(t, c, buildid.Query{ID: id}, bad.URL, "BAD", empty.URL, "EMPTY")
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got error %v, want one that is no miss", err)
		}
		want := []string{"BAD: 500: cannot answer now", "EMPTY: 404: no such file", "BAD: 500: cannot answer now", "EMPTY: 404: no such file"}
		for i := range notes {
			if strings.Contains(notes[i], "the last request failed") { // from the fifth failure on
				notes[i] = want[i]
			}
		}
		if diff := cmp.Diff(notes, want); diff != "" {
			t.Error("notes (-got +want):\n" + diff)
		}
	}
	if got, want := len(empty.requests()), 2; got != want {
		t.Errorf("got %d requests, want %d", got, want)
	}
	if got, want := len(bad.requests()), breakAfter; got != want {
		t.Errorf("got %d requests to the one that fails, want %d", got, want)
	}
	if info := c.cache.info(); info.Misses != 0 {
		t.Errorf("got %d misses on disk, want none", info.Misses)
	}
}

// A server that never sends a complete file must be paused, like a server that sends nothing.
func TestServerThatAlwaysStopsInTheMiddleIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, raw("HTTP/1.1 200 OK\r\nContent-Length: 102400\r\n\r\n"+string(elfFile(testID(1), 1000))))
	c := newClient(t, Options{}, s.URL)
	for n := range 2 * breakAfter {
		if _, _, err := find(t, c, query(n)); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got error %v, want one that is no miss", err)
		}
	}
	if got := len(s.requests()); got != breakAfter {
		t.Errorf("got %d requests, want %d", got, breakAfter)
	}
}

func TestTransientFailureIsRetried(t *testing.T) {
	t.Parallel()
	id := testID(1)
	good := elfFile(id, 100<<10)
	failures := map[string]http.HandlerFunc{
		"503":       status(503),
		"429":       func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Retry-After", "1"); w.WriteHeader(429) },
		"truncated": raw("HTTP/1.1 200 OK\r\nContent-Length: 102400\r\n\r\n" + string(good[:1000])),
		"reset":     raw(""),
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *fake
			s = serve(t, func(w http.ResponseWriter, r *http.Request) {
				if len(s.requests()) <= 2 {
					failure(w, r)
					return
				}
				sends(good)(w, r)
			})
			got, notes, err := find(t, newClient(t, Options{RetryLimit: 2}, s.URL), buildid.Query{ID: id})
			if err != nil || !bytes.Equal(got, good) {
				t.Errorf("got %d bytes, %v, %q", len(got), err, notes)
			}
			if got := len(s.requests()); got != 3 {
				t.Errorf("got %d requests, want 3", got)
			}
		})
	}
}

func TestLongRetryAfterIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3000")
		w.WriteHeader(503)
	})
	c := newClient(t, Options{RetryLimit: 5}, s.URL)
	for _, want := range []string{`^S: 503: cannot answer now$`, `^S: not asked: the last request failed; the next one is possible in (50m0s|49m\d+s)$`} {
		_, notes, _ := find(t, c, buildid.Query{ID: testID(1)}, s.URL, "S")
		if len(notes) != 1 || !regexp.MustCompile(want).MatchString(notes[0]) {
			t.Errorf("got notes %q, want %s", notes, want)
		}
	}
	if got := len(s.requests()); got != 1 {
		t.Errorf("got %d requests, want 1", got)
	}
}

func TestBreaker(t *testing.T) {
	var b breaker
	now := time.Unix(1e9, 0)
	fail := func() { b.bad(now, 0) }
	allowed := func(want bool, when string) {
		t.Helper()
		if got := b.allow(now); got != want {
			t.Errorf("%s: got %v, want %v", when, got, want)
		}
	}
	for range breakAfter - 1 {
		allowed(true, "closed")
		fail()
	}
	allowed(true, "before the last")
	fail()
	for pause := breakFirst; ; pause = min(2*pause, breakMost) {
		now = now.Add(pause - 1)
		allowed(false, "open")
		now = now.Add(1)
		allowed(true, "the one that tries")
		allowed(false, "another one meanwhile")
		b.abandoned()
		allowed(true, "the next that tries")
		if pause == breakMost {
			break
		}
		fail()
	}
	fail()
	now = now.Add(breakMost)
	allowed(true, "after the longest pause")
	b.good()
	for range 3 {
		allowed(true, "closed again")
	}
	b.bad(now, 20*time.Minute)
	now = now.Add(20*time.Minute - 1)
	allowed(false, "as the server asked")
	now = now.Add(1)
	allowed(true, "after what the server asked")
}

func TestVerdictsExpireAndAreBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	s := newServer("http://h")
	now := time.Unix(1e9, 0)
	at := func(n int) key { return key{id: testID(n), kind: buildid.Debug} }
	s.remember(at(0), verdict{true, "old", now, now.Add(time.Second)}, now)
	if v, ok := s.verdictOn(at(0), now.Add(time.Second-1)); !ok || v.reason != "old" {
		t.Errorf("got %v, %v", v, ok)
	}
	if v, ok := s.verdictOn(at(0), now.Add(time.Second)); ok {
		t.Errorf("after its time: got %v", v)
	}
	for n := range maxVerdicts {
		until := now.Add(time.Minute)
		if n >= maxVerdicts/2 {
			until = now.Add(time.Hour)
		}
		s.remember(at(n), verdict{true, "", now, until}, now)
	}
	now = now.Add(2 * time.Minute)
	s.remember(at(maxVerdicts), verdict{true, "", now, now.Add(time.Hour)}, now)
	if got, want := len(s.verdicts), maxVerdicts/2+1; got != want {
		t.Errorf("after the expired ones went: got %d, want %d", got, want)
	}
	for n := range 2 * maxVerdicts {
		s.remember(at(maxVerdicts+n), verdict{true, "", now, now.Add(time.Hour)}, now)
		if got := len(s.verdicts); got > maxVerdicts {
			t.Fatalf("got %d, want at most %d", got, maxVerdicts)
		}
	}
	if _, ok := s.verdictOn(at(3*maxVerdicts-1), now); !ok {
		t.Error("the last is not known")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		text string
		want time.Duration
	}{
		{"", 0}, {"7", 7 * time.Second}, {"-7", 0}, {"soon", 0},
		{"99999999999999999999", breakMost}, {"1e3", 0},
		{"Wed, 02 Jan 2030 03:05:05 GMT", time.Minute},
		{"Wed, 02 Jan 2030 03:03:05 GMT", 0},
		{"Wed, 02 Jan 2999 03:03:05 GMT", breakMost},
	}
	for _, tt := range tests {
		if got := retryAfter(http.Header{"Retry-After": {tt.text}}, now); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.text, got, tt.want)
		}
	}
}

// The header of an answer shows a miss, so the client must not wait for the rest of the answer.
func TestMissDoesNotWaitForItsBody(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		slowly(bytes.Repeat([]byte("no"), 1000), 1, 100*time.Millisecond)(w, r)
	})
	c := newClient(t, Options{}, s.URL)
	within(t, time.Minute, func() {
		if _, err := c.Find(t.Context(), buildid.Query{ID: testID(1)}, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, want a miss", err)
		}
	})
}
