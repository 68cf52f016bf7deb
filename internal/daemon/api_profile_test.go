package daemon

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	runtimemetrics "runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/internal/profile"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// serverProfile returns a CPU profile of testdata/server. One of its locations has a function,
// others have none, and one is in a build without a debug file.
func serverProfile() *pprof.Profile {
	server := &pprof.Mapping{ID: 1, Start: 0x555500002000, Limit: 0x555500005000, Offset: 0x1000, File: "/srv/server", BuildID: serverID}
	other := &pprof.Mapping{ID: 2, Start: 0x7f0000001000, Limit: 0x7f0000002000, Offset: 0x1000, File: "/lib/libother.so", BuildID: "0011"}
	self := &pprof.Mapping{ID: 3, Start: 0x7f0000101000, Limit: 0x7f0000102000, Offset: 0x1000, File: "/proc/self/exe"}
	known := &pprof.Function{ID: 1, Name: "handle", SystemName: "handle", Filename: "kept.rb", StartLine: 3}
	p := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &pprof.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1e7, TimeNanos: 1.6e18, DurationNanos: 3e9,
		DefaultSampleType: "cpu", Comments: []string{"from a test"}, DropFrames: "malloc",
		Mapping: []*pprof.Mapping{server, other, self}, Function: []*pprof.Function{known},
		Location: []*pprof.Location{
			{ID: 1, Mapping: server, Address: 0x555500003fa6},
			{ID: 2, Mapping: server, Address: 0x555500003fd6},
			{ID: 3, Mapping: server, Address: 0x555500003fd6, Line: []pprof.Line{{Function: known, Line: 5, Column: 2}}},
			{ID: 4, Mapping: other, Address: 0x7f0000001010},
			{ID: 5, Mapping: self, Address: 0x7f0000101010},
		},
	}
	p.Sample = []*pprof.Sample{
		{Location: []*pprof.Location{p.Location[0], p.Location[2], p.Location[4]}, Value: []int64{1, 1e7}, Label: map[string][]string{"thread": {"main"}}},
		{Location: []*pprof.Location{p.Location[3], p.Location[1]}, Value: []int64{2, 2e7}, NumLabel: map[string][]int64{"bytes": {64}}, NumUnit: map[string][]string{"bytes": {"bytes"}}},
	}
	return p
}

func pprofOf(t *testing.T, p *pprof.Profile) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// namedProfile returns the output of package profile, which "symfilter profile" uses.
func namedProfile(t *testing.T, in string) string {
	t.Helper()
	sym := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../../testdata/debug")}})
	defer sym.Close()
	p, err := profile.Read(strings.NewReader(in), profile.Options{Options: report.Options{Symbolizer: sym, NoPaths: true, Wait: 1 << 40}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var b bytes.Buffer
	if err := p.Write(&b, profile.Pprof, profile.View{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const (
	profileAnswer = "200 application/octet-stream\n"
	profileCounts = "header Symfilter-Resolved: 2\nheader Symfilter-Unresolved: 2\n"
)

func TestTheServiceNamesProfiles(t *testing.T) {
	d, url := answering(t, "profile: true", "")
	in := serverProfile()
	packed := pprofOf(t, in)
	var plain bytes.Buffer
	if err := in.WriteUncompressed(&plain); err != nil {
		t.Fatal(err)
	}
	want := profileAnswer + namedProfile(t, packed) + profileCounts
	for _, tt := range []struct {
		name    string
		body    io.Reader
		headers []string
	}{
		{"gzip", strings.NewReader(packed), nil},
		{"plain", bytes.NewReader(plain.Bytes()), nil},
		{"gzip, as an encoding", strings.NewReader(packed), []string{"Content-Encoding", "gzip"}},
		{"packed twice", gzipped(packed), []string{"Content-Encoding", "gzip"}},
		{"zstd", zstandard(t, plain.String()), nil},
		{"in chunks", unsized{strings.NewReader(packed)}, nil},
	} {
		if got := post(t, "POST", url+"/v1/profile", tt.body, tt.headers...); got != want {
			t.Errorf("%s: got %q\nwant %q", tt.name, got, want)
		}
	}
	owesNothing(t, d)

	got := strings.TrimSuffix(strings.TrimPrefix(post(t, "POST", url+"/v1/profile", strings.NewReader(packed)), profileAnswer), profileCounts)
	p, err := pprof.ParseData([]byte(got))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	const listing = `Comment: from a test
PeriodType: cpu nanoseconds
Period: 10000000
Time: 2020-09-13 12:26:40 +0000 UTC
Duration: 3s
Samples:
samples/count cpu/nanoseconds[dflt]
          1   10000000: 1 3 5 
                thread:[main]
          2   20000000: 4 2 
                bytes:[64 bytes]
Locations
     1: 0x555500003fa6 M=1 Server::cost(Request const&) const /src/server/server.cc:34:59 s=0(_ZNK6Server4costERK7Request)
             Server::answer() /src/server/server.cc:41:10 s=0(_ZN6Server6answerEv)
     2: 0x555500003fd6 M=1 Server::run() /src/server/server.cc:47:14 s=0(_ZN6Server3runEv)
     3: 0x555500003fd6 M=1 handle kept.rb:5:2 s=3
     4: 0x7f0000001010 M=2 
     5: 0x7f0000101010 M=3 
Mappings
1: 0x555500002000/0x555500005000/0x1000 /srv/server da43cc177c674286dc64206eebed748fde112bed [FN][FL][LN][IN]
2: 0x7f0000001000/0x7f0000002000/0x1000 /lib/libother.so 0011 
3: 0x7f0000101000/0x7f0000102000/0x1000 /proc/self/exe  
`
	if diff := cmp.Diff(listing, p.String()); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	if p.DropFrames != "malloc" {
		t.Errorf("drop_frames is %q", p.DropFrames)
	}
}

func TestProfilesThatAreRefused(t *testing.T) {
	d, url := answering(t, "profile: true", "}\nlimits: {context_bytes: 1GiB")
	packed := pprofOf(t, serverProfile())
	field := func(text string) string { return "\x0a\x04\x08\x01\x10\x02" + text + "\x32\x00\x32\x03cpu\x32\x01s" }
	bomb := gzipped(gzipped(strings.Repeat("\x00", maxProfile+1)).String()).String()
	const convert = `; "symfilter profile --output=pprof" converts other profiles` + "\n"
	unknown := "400 the body is not a pprof profile; send protocol buffers of pprof's profile.proto, plain or compressed by gzip" + convert
	for _, tt := range []struct{ name, body, want string }{
		{"nothing", "", unknown},
		{"JSON", `{"frames":[]}`, unknown},
		{"noise", "\xff\xfe\xfd\xfc", unknown},
		{"another profile", "heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2] @ 0x10 0x20\n",
			"400 the body is not a profile of pprof: a heap profile of gperftools; send a pprof profile, plain or compressed by gzip" + convert},
		{"a file of DHAT", `{"dhatFileVersion":2,"mode":"heap","verb":"Allocated"}`,
			"400 the body is not a profile of pprof: a DHAT file; send a pprof profile, plain or compressed by gzip" + convert},
		{"cut gzip", packed[:len(packed)/2], "400 the body is not a valid gzip file, or ends too early: unexpected EOF\n"},
		{"damaged gzip", packed[:len(packed)/2] + "damage" + packed[len(packed)/2+6:], "400 the body is not a valid gzip file, or ends too early: "},
		{"a cut message", field("\x22\x7f"), "400 pprof profile: the profile is cut off: a field of 127 bytes has only 10; send the whole profile again\n"},
		{"no values", "\x32\x00\x32\x03cpu", "400 pprof profile: the profile has no value types; send a valid pprof profile\n"},
		{"a string out of range", field("\x2a\x04\x08\x01\x10\x07"), "400 pprof profile: string 7 is not in the string table, which has 3; send a valid pprof profile"},
		{"a location out of range", field("\x12\x05\x0a\x01\x09\x10\x01"), "400 pprof profile: a sample refers to the location 9, which the profile does not have; send a valid pprof profile"},
		{"two locations of one ID", field("\x22\x02\x08\x01\x22\x02\x08\x01"), "400 pprof profile: two locations have the ID 1; send a valid pprof profile"},
		{"an endless number", field("\x4a" + strings.Repeat("\xff", 12)), unknown},
		{"a large profile", field(strings.Repeat("\x32\xff\x7f"+strings.Repeat("a", 1<<14-1), maxProfile>>14)),
			"413 the profile has more than 32 MiB unpacked, or takes more than 128 MiB while it is read; split its samples over several requests\n"},
		{"many locations", field("") + manyLocations(1<<20), "413 the profile has more than 32 MiB"},
		{"a bomb", gzipped(strings.Repeat("\x00", maxProfile)).String(), "413 the body unpacks to more than "},
		{"a bomb in gzip", bomb, "413 the profile has more than 32 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Replace(post(t, "POST", url+"/v1/profile", strings.NewReader(tt.body)), " text/plain; charset=utf-8\n", " ", 1)
			if !strings.HasPrefix(got, tt.want) || strings.HasSuffix(tt.want, "\n") && got != tt.want {
				t.Errorf("got %.300q\nwant %q", got, tt.want)
			}
		})
	}
	if got, want := post(t, "GET", url+"/v1/profile", nil), "405 text/plain; charset=utf-8\nsend the request with POST, as a profile of pprof\nheader Allow: POST\n"; got != want {
		t.Errorf("got %q", got)
	}
	owesNothing(t, d)
	if got := post(t, "POST", url+"/v1/profile", strings.NewReader(packed)); !strings.HasPrefix(got, profileAnswer) {
		t.Errorf("then a profile is answered by %.100q", got)
	}
}

// manyLocations returns n locations in pprof's format, with IDs from 1.
func manyLocations(n int) string {
	var b strings.Builder
	for i := range n {
		id := []byte{0x22, 5, 8}
		b.Write(append(id, byte(i+1)|0x80, byte((i+1)>>7)|0x80, byte((i+1)>>14)|0x80, byte((i+1)>>21)))
	}
	return b.String()
}

func TestProfilesShareTheAccountOfLogs(t *testing.T) {
	d, url := answering(t, "profile: true", "}\nlimits: {context_bytes: 16MiB")
	const full = "503 text/plain; charset=utf-8\nlimits.context_bytes leaves no memory for this request; send the request again later, or raise the limit\nheader Retry-After: 1\n"
	small := pprofOf(t, serverProfile())
	large := "\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x03cpu\x32\x01s" + manyLocations(64<<10)
	if got := post(t, "POST", url+"/v1/profile", strings.NewReader(large)); got != full {
		t.Errorf("a large profile: got %.200q", got)
	}
	owesNothing(t, d)
	d.house.contexts.borrow(16<<20 - packBytes)
	if got := post(t, "POST", url+"/v1/profile", strings.NewReader(small)); got != full {
		t.Errorf("a small profile beside logs: got %.200q", got)
	}
	d.house.contexts.borrow(-16<<20 + packBytes)
	if got := post(t, "POST", url+"/v1/profile", strings.NewReader(small)); !strings.HasPrefix(got, profileAnswer) {
		t.Errorf("a small profile: got %.200q", got)
	}
	owesNothing(t, d)
}

// A tab is a [batch.Room] that adds up the requested bytes.
type tab struct{ taken atomic.Int64 }

func (r *tab) Take(n int64) bool { r.taken.Add(n); return true }

// live returns the bytes of live objects in the heap.
func live() int64 {
	runtime.GC()
	sample := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtimemetrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// A watchedWriter drops what is written to it. It keeps the largest heap size, measured at the
// first two writes and at every 64th.
type watchedWriter struct {
	n    int
	most int64
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	if w.n++; w.n < 3 || w.n%64 == 0 {
		w.most = max(w.most, live())
	}
	return len(p), nil
}

// For a profile of many small parts, the heap may grow by at most the bytes taken from the room.
func TestProfilesTakeNoMoreThanTheirRoom(t *testing.T) {
	text := func(n int) string { return fmt.Sprintf("%08d", n) }
	number := func(field byte, n int) string { return string(binary.AppendUvarint([]byte{field << 3}, uint64(n))) }
	message := func(field byte, text string) string {
		return string(append(binary.AppendUvarint([]byte{field<<3 | 2}, uint64(len(text))), text...))
	}
	const parts = 50_000
	for _, tt := range []struct {
		name string
		part func(n int) string
	}{
		{"strings", func(n int) string { return "" }},
		{"mappings", func(n int) string {
			return message(3, number(1, n)+number(2, n<<12)+number(3, n<<12+1)+number(6, n)) + message(4, number(1, n)+number(2, n)+number(3, n<<12))
		}},
		{"functions", func(n int) string { return message(5, number(1, n)+number(2, n)+number(3, n)) }},
		{"locations", func(n int) string { return message(4, number(1, n)+message(4, "")+message(4, "")) }},
		{"samples", func(n int) string { return message(2, message(2, "\x01")+message(3, number(1, n)+number(3, 1))) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("\x0a\x04\x08\x01\x10\x02\x32\x00")
			for n := range parts {
				b.WriteString(message(6, text(n+1)))
			}
			for n := range parts {
				b.WriteString(tt.part(n + 1))
			}
			sym := symbolize.New(symbolize.Options{})
			defer sym.Close()
			room, w, body := &tab{}, &watchedWriter{}, strings.NewReader(b.String())
			before := live()
			write, err := nameProfile(t.Context(), &batch.Symbols{Symbolizer: sym, Room: room}, body, http.Header{})
			if err != nil {
				t.Fatal(err)
			}
			read := live() - before
			if err := write(w); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes of a profile: %d taken, %d in use when it was read, %d while it is written", b.Len(), room.taken.Load(), read, w.most-before)
			if most := room.taken.Load(); read > most || w.most-before > most {
				t.Errorf("%d bytes were taken; %d are in use when it was read, and %d while it is written", most, read, w.most-before)
			}
		})
	}
}

func TestClientsThatDoNotReadTheirProfile(t *testing.T) {
	d, url := answering(t, "profile: true", "}\nlimits: {context_bytes: 1GiB")
	p := serverProfile()
	random := rand.NewChaCha8([32]byte{})
	text := make([]byte, 24<<20) // more than the buffers of the connection hold
	random.Read(text)
	p.Comments = []string{string(text)}
	large, small := pprofOf(t, p), pprofOf(t, serverProfile())
	addr := strings.TrimPrefix(url, "http://")
	var deaf []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/profile HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(large), large)
		if _, err := bufio.NewReaderSize(c, 16).ReadByte(); err != nil { // the answer has begun, and the client stops reading
			t.Fatal(err)
		}
		deaf = append(deaf, c)
	}
	if got := post(t, "POST", url+"/v1/profile", strings.NewReader(small)); !strings.HasPrefix(got, profileAnswer) {
		t.Errorf("got %.200q", got)
	}
	d.house.ledger.mu.Lock()
	held := d.house.ledger.all
	d.house.ledger.mu.Unlock()
	if held < 2*int64(len(text)) {
		t.Errorf("two clients that do not read hold %d bytes of the account", held)
	}
	for _, c := range deaf {
		c.Close()
	}
	owesNothing(t, d)
}

func TestProfilesWaitForServersForATime(t *testing.T) {
	behind, _ := hanging(t)
	d, url := answering(t, "profile: true, wait: 20ms", ", debuginfod_urls: [\""+behind+"\"]")
	got := post(t, "POST", url+"/v1/profile", strings.NewReader(pprofOf(t, serverProfile())))
	if !strings.HasPrefix(got, profileAnswer) || !strings.HasSuffix(got, profileCounts) {
		t.Errorf("got %q", got)
	}
	owesNothing(t, d)
}

func TestProfilesEndWithTheDaemon(t *testing.T) {
	behind, begun := hanging(t)
	addr := freeAddress(t)
	c := configuration(t, t.TempDir(), serviceConfig(addr, "profile: true, wait: 10m", ", debuginfod_urls: [\""+behind+"\"]"))
	_, stop := started(t, c, Options{})
	body := pprofOf(t, serverProfile())
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Post("http://"+addr+"/v1/profile", "", strings.NewReader(body))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		answer <- resp.Status + " " + string(text)
	}()
	<-begun
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := <-answer; got != "503 Service Unavailable "+errStopped.Error()+"\n" {
		t.Errorf("got %q", got)
	}
}
