package debuginfod

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestExecutableIsAskedForWhenThereIsNoDebugFile(t *testing.T) {
	t.Parallel()
	id := testID(1)
	exec := "/buildid/" + id.String() + "/executable"
	tests := []struct {
		kind buildid.Kind
		want []string // requests
		ok   bool
	}{
		{buildid.Debug, []string{debugPath(id), exec}, true},
		{buildid.Executable, []string{exec}, true},
		{buildid.Alt, []string{debugPath(id)}, false},
	}
	for _, tt := range tests {
		s := serve(t, has(map[string][]byte{exec: elfFile(id, 0)}))
		_, notes, err := find(t, newClient(t, Options{}, s.URL), buildid.Query{ID: id, Kind: tt.kind}, s.URL, "S")
		if ok := err == nil; ok != tt.ok {
			t.Errorf("kind %d: got %v, %q", tt.kind, err, notes)
		}
		if diff := cmp.Diff(s.requests(), tt.want); diff != "" {
			t.Errorf("kind %d: requests (-got +want):\n%s", tt.kind, diff)
		}
	}
}

// All servers must be asked at once, and the first good answer must end the other requests.
func TestServersAreAskedAtOnce(t *testing.T) {
	t.Parallel()
	id := testID(1)
	var both sync.WaitGroup
	both.Add(2)
	left := make(chan struct{})
	slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
		both.Done()
		<-r.Context().Done()
		close(left)
	})
	fast := serve(t, func(w http.ResponseWriter, r *http.Request) {
		both.Done()
		both.Wait()
		sends(elfFile(id, 0))(w, r)
	})
	c := newClient(t, Options{}, slow.URL, fast.URL)
	f, err := c.Find(t.Context(), buildid.Query{ID: id}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, want := f.Where(), "debuginfod "+fast.URL; got != want {
		t.Errorf("got it from %q, want %q", got, want)
	}
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("the other request goes on")
	}
}

func TestProgressAndFirstContact(t *testing.T) {
	t.Parallel()
	id := testID(1)
	body := elfFile(id, 2<<20)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != debugPath(id) {
			w.WriteHeader(404)
			return
		}
		w.Header().Set("X-DEBUGINFOD-SIZE", "2097152")
		slowly(body, 256<<10, 30*time.Millisecond)(w, r)
	})
	var all []Progress
	var servers []string
	c := newClient(t, Options{
		Progress:     func(p Progress) { all = append(all, p) },
		FirstContact: func(server string) { servers = append(servers, server) },
	}, strings.Replace(s.URL, "//", "//me:secret@", 1))
	find(t, c, buildid.Query{ID: id, Name: "lib.so"})
	if len(all) < 3 || len(all) > 20 {
		t.Fatalf("got %d calls", len(all))
	}
	if diff := cmp.Diff(all[0], Progress{ID: id, Name: "lib.so", Total: -1}, cmp.Comparer(func(a, b buildid.ID) bool { return a == b })); diff != "" {
		t.Error("the first (-got +want):\n" + diff)
	}
	if got, want := all[len(all)-1], (Progress{ID: id, Name: "lib.so", Server: s.URL, Bytes: 2 << 20, Total: 2 << 20, Done: true}); got != want {
		t.Errorf("the last: got %+v, want %+v", got, want)
	}
	for i := range all[1:] {
		if all[i].Done || all[i].Bytes > all[i+1].Bytes {
			t.Errorf("call %d: got %+v before %+v", i, all[i], all[i+1])
		}
	}
	all = nil
	_, _, err := find(t, c, buildid.Query{ID: testID(2), Kind: buildid.Executable})
	if len(all) != 2 || !all[1].Done || !errors.Is(all[1].Err, fs.ErrNotExist) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a miss: got %+v, %v", all, err)
	}
	if diff := cmp.Diff(servers, []string{s.URL}); diff != "" {
		t.Error("first contacts (-got +want):\n" + diff)
	}
}

// note returns a note section. Its last note holds id; the other notes are not build IDs.
func note(order binary.AppendByteOrder, id buildid.ID) []byte {
	one := func(b []byte, name string, kind uint32, desc []byte) []byte {
		b = order.AppendUint32(b, uint32(len(name)))
		b = order.AppendUint32(b, uint32(len(desc)))
		b = order.AppendUint32(b, kind)
		b = append(b, name...)
		b = append(b, make([]byte, -len(name)&3)...)
		b = append(b, desc...)
		return append(b, make([]byte, -len(desc)&3)...)
	}
	b := one(nil, "GNU\x00", 1, make([]byte, 16))
	b = one(b, "Go\x00\x00", 3, []byte("other"))
	return one(b, "GNU\x00", 3, id.Bytes())
}

func TestSectionIsOfTheRightBuild(t *testing.T) {
	t.Parallel()
	id, other := testID(1), testID(2)
	at := func(name string) string { return "/buildid/" + id.String() + "/section/" + name }
	line := []byte("rows")
	little, big := note(binary.LittleEndian, id), note(binary.BigEndian, id)
	tests := []struct {
		name  string
		files []map[string][]byte // files of each server
		want  string              // the error; empty if the section is found
		miss  bool
	}{
		{"", []map[string][]byte{{at(noteSection): little, at(".debug_line"): line}}, "", false},
		{"big endian", []map[string][]byte{{at(noteSection): big, at(".debug_line"): line}}, "", false},
		{"from the second", []map[string][]byte{{at(noteSection): little}, {at(".debug_line"): []byte("wrong")}, {at(noteSection): little, at(".debug_line"): line}}, "", false},
		{"another build", []map[string][]byte{{at(noteSection): note(binary.LittleEndian, other), at(".debug_line"): line}}, "sent the note of another build, " + other.String(), false},
		{"no build", []map[string][]byte{{at(noteSection): little[:40], at(".debug_line"): line}}, "sent a note without a build ID", false},
		{"only the section", []map[string][]byte{{at(".debug_line"): line}}, "file does not exist", true},
		{"nothing", []map[string][]byte{{}, {}}, "file does not exist", true},
	}
	for _, tt := range tests {
		o := Options{}
		for _, files := range tt.files {
			o.URLs = append(o.URLs, serve(t, has(files)).URL)
		}
		got, err := newClient(t, o).Section(t.Context(), id, ".debug_line")
		switch {
		case tt.want == "" && (err != nil || !bytes.Equal(got, line)):
			t.Errorf("%s: got %q, %v", tt.name, got, err)
		case tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.want) || errors.Is(err, fs.ErrNotExist) != tt.miss):
			t.Errorf("%s: got %q, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	got, err := newClient(t, Options{}, serve(t, has(map[string][]byte{at(noteSection): little})).URL).Section(t.Context(), id, noteSection)
	if err != nil || !bytes.Equal(got, little) {
		t.Errorf("the note itself: got %q, %v", got, err)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	id := testID(1)
	closed := serve(t, status(404))
	closed.Close()
	tests := []struct {
		name string
		url  string
		id   buildid.ID
		want access.ProbeResult
	}{
		{"nobody's ID", serve(t, status(404)).URL, buildid.ID{}, access.ProbeResult{Reachable: true, Works: true, Answer: "404: no such file"}},
		{"one it has", serve(t, sends(elfFile(id, 1<<20))).URL, id, access.ProbeResult{Reachable: true, Works: true, Has: true, Answer: "has the file"}},
		{"a page", serve(t, sends([]byte("<html>"))).URL, id, access.ProbeResult{Reachable: true, Answer: "sent something other than an ELF file"}},
		{"broken", serve(t, status(500)).URL, id, access.ProbeResult{Reachable: true, Answer: "500: cannot answer now"}},
		{"down", closed.URL, id, access.ProbeResult{Answer: "refuses connections"}},
		{"silent", serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).URL, id, access.ProbeResult{Answer: "did not answer within 300ms"}},
		{"refused", "file:///x", id, access.ProbeResult{Answer: `refused: "file:" is neither http nor https`}},
	}
	for _, tt := range tests {
		o := Options{}
		if tt.name == "silent" {
			o.Timeout = 300 * time.Millisecond
		}
		c := newClient(t, o, tt.url)
		got := c.probe(t.Context(), tt.url, tt.id)
		if got.Reachable && got.Took <= 0 {
			t.Errorf("%s: got %v", tt.name, got.Took)
		}
		got.Took, tt.want.Server = 0, tt.url
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if got := newClient(t, Options{}).probe(t.Context(), "http://h", id); got.Answer != "not a server of this client" {
		t.Errorf("a stranger: got %+v", got)
	}
}

// FuzzBytesOfServers checks that the parsers of servers' answers, and of the operator's files, give
// consistent results for any bytes.
func FuzzBytesOfServers(f *testing.F) {
	f.Add(note(binary.LittleEndian, testID(1)))
	f.Add(note(binary.BigEndian, testID(1)))
	f.Add(elfFile(testID(1), 0))
	f.Add([]byte("X-A: b\n c: d"))
	f.Add([]byte(" -600\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Watch(t, data)()
		if id, err := noteID(data); err == nil && !bytes.Contains(data, id.Bytes()) {
			t.Errorf("the ID %s is not in the note", id)
		}
		if end, ok := sectionsEnd(data); ok && string(data[:4]) != elfMagic {
			t.Errorf("no ELF file ends at %d", end)
		}
		if d, ok := parseSeconds(string(data)); d < 0 || !ok && d != 0 {
			t.Errorf("got %v", d)
		}
		h, err := parseHeaders(string(data))
		if err != nil && h != nil {
			t.Errorf("got %v and %v", h, err)
		}
		for name, values := range h {
			if !isToken(name) || strings.ContainsAny(strings.Join(values, ""), "\r\n\x00") {
				t.Errorf("got the header %q: %q", name, values)
			}
		}
	})
}
