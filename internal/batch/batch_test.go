package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/symbolize"
)

// server is the build ID of testdata/server.
const server = "da43cc177c674286dc64206eebed748fde112bed"

// A budget is a [Room] that grants a fixed number of bytes in all.
type budget struct{ left atomic.Int64 }

func room(n int64) *budget {
	b := &budget{}
	b.left.Store(n)
	return b
}

func (b *budget) Take(n int64) bool {
	if b.left.Add(-n) >= 0 {
		return true
	}
	b.left.Add(n)
	return false
}

// symbols returns Symbols that find the repository's debug files, and ask servers for others.
func symbols(t *testing.T, servers ...symbolize.Finder) *Symbols {
	t.Helper()
	s := symbolize.New(symbolize.Options{
		Finders: []symbolize.Finder{buildid.NewTree(filepath.Join("..", "..", "testdata", "debug"))}, Servers: servers,
	})
	t.Cleanup(func() { s.Close() })
	return &Symbols{Symbolizer: s, Room: room(1 << 30)}
}

// answered returns the answer of Symbolize, or its error.
func answered(t *testing.T, s *Symbols, request string) string {
	t.Helper()
	write, err := Symbolize(t.Context(), s, strings.NewReader(request))
	if err != nil {
		return fmt.Sprintf("%T: %v", err, err)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// schema returns the published schema of a "request" or a "response".
func schema(t *testing.T, of string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("symbolize.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("urn:symfilter:symbolize:1", all); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:symfilter:symbolize:1#/$defs/" + of)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// matches returns an error if text is not valid by the schema of a "request" or a "response".
func matches(t *testing.T, of, text string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema(t, of).Validate(v)
}

func TestAnswersAreInTheOrderOfTheirQuestions(t *testing.T) {
	request := `{"frames":[
		{"build_id":"` + server + `","offset":"0x3fd7","return_address":true},
		{"build_id":"00112233","offset":"0x10"},
		{"build_id":"` + strings.ToUpper(server) + `","offset":16294},
		{"build_id":"` + server + `","offset":"0xffffffff"},
		{"offset":"0x3fd7","return_address":false,"build_id":"` + server + `"}]}`
	cost := `{"function":"Server::cost(Request const&) const","linkage":"_ZNK6Server4costERK7Request","file":"/src/server/server.cc","line":34,"column":59,"inlined":true},` +
		`{"function":"Server::answer()","linkage":"_ZN6Server6answerEv","file":"/src/server/server.cc","line":41,"column":10,"inlined":false}`
	run := `{"function":"Server::run()","linkage":"_ZN6Server3runEv","file":"/src/server/server.cc","line":47,"column":14,"inlined":false}`
	want := `{"v":1,"frames":[{"frames":[` + run + `]},{"reason":"no_file"},{"frames":[` + cost + `]},{"reason":"no_symbol"},{"frames":[` + run + `]}]}` + "\n"
	got := answered(t, symbols(t), request)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := matches(t, "request", request); err != nil {
		t.Error(err)
	}
	if err := matches(t, "response", got); err != nil {
		t.Error(err)
	}
}

// A large answer must be written in parts, which together are valid JSON.
func TestBatchesAreAnsweredWhole(t *testing.T) {
	frame := `{"build_id":"` + server + `","offset":"0x3fd7"}`
	request := `{"frames":[` + strings.Repeat(frame+",", MaxFrames-1) + frame + `]}`
	got := answered(t, symbols(t), request)
	if err := matches(t, "response", got); err != nil {
		t.Error(err)
	}
	if n := strings.Count(got, `"function":"Server::run()"`); n != MaxFrames {
		t.Errorf("got %d frames, want %d", n, MaxFrames)
	}
	if err := matches(t, "request", request); err != nil {
		t.Error(err)
	}
}

func TestRequestsThatCannotBeAnswered(t *testing.T) {
	frame := `{"build_id":"aabb","offset":"0x3fd7"}`
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"build_id":"%08x","offset":0},`, i+1)
		}
		return `{"frames":[` + strings.TrimSuffix(b.String(), ",") + `]}`
	}
	for _, tt := range []struct{ name, request, want string }{
		{"nothing", ``, "*batch.InvalidError: the JSON in the body is missing or incomplete"},
		{"cut off", `{"frames":[` + frame, "*batch.InvalidError: frames: the JSON in the body is missing or incomplete"},
		{"no JSON", `frames`, "*batch.InvalidError: the body is not JSON: invalid character 'r' in literal false (expecting 'a')"},
		{"two values", `{"frames":[]}{}`, "*batch.InvalidError: the body has more than one JSON value"},
		{"a list", `[]`, "*batch.InvalidError: an array, want an object"},
		{"no frames", `{}`, "*batch.InvalidError: the request has no frames"},
		{"null", `{"frames":null}`, "*batch.InvalidError: frames: null, want an array"},
		{"unknown", `{"frame":[]}`, "*batch.InvalidError: frame: unknown member; a request has only the member frames"},
		{"unknown in a frame", `{"frames":[{"build_id":"aa","addr":1}]}`, "*batch.InvalidError: frames[0].addr: unknown member; a frame has build_id, offset and return_address"},
		{"no ID", `{"frames":[` + frame + `,{"offset":1}]}`, "*batch.InvalidError: frames[1]: the frame has no build_id"},
		{"no offset", `{"frames":[{"build_id":"aabb"}]}`, "*batch.InvalidError: frames[0]: the frame has no offset"},
		{"another ID", `{"frames":[{"build_id":"libc","offset":1}]}`, `*batch.InvalidError: frames[0].build_id: "libc" is not a build ID in hex`},
		{"a wrong kind", `{"frames":[{"build_id":7,"offset":1}]}`, `*batch.InvalidError: frames[0].build_id: a number, want a string`},
		{"a negative offset", `{"frames":[{"build_id":"aabb","offset":-1}]}`, `*batch.InvalidError: frames[0].offset: "-1" is not a number from 0 to 2^64-1`},
		{"a large offset", `{"frames":[{"build_id":"aabb","offset":"0x10000000000000000"}]}`, `*batch.InvalidError: frames[0].offset: "10000000000000000" is not a number from 0 to 2^64-1`},
		{"a fraction", `{"frames":[{"build_id":"aabb","offset":1.5}]}`, `*batch.InvalidError: frames[0].offset: "1.5" is not a number from 0 to 2^64-1`},
		{"no switch", `{"frames":[{"build_id":"aabb","offset":1,"return_address":1}]}`, `*batch.InvalidError: frames[0].return_address: a number, want true or false`},
		{"a long ID", `{"frames":[{"build_id":"` + strings.Repeat("a", MaxText+1) + `","offset":1}]}`, `*batch.TooLargeError: a string has 4097 bytes; at most 4096 are allowed`},
		{"many frames", `{"frames":[` + strings.Repeat(frame+",", MaxFrames) + frame + `]}`, "*batch.TooLargeError: the request has more than 10000 frames; send it in several requests"},
		{"many modules", many(MaxModules + 1), "*batch.TooLargeError: the request has 1001 modules; at most 1000 are allowed"},
		{"a large body", strings.Repeat(" ", MaxBody) + `{"frames":[]}`, "*batch.TooLargeError: the request is larger than 16 MiB; send it in several requests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := answered(t, symbols(t), tt.request); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
			if tt.name != "many modules" && tt.name != "a large offset" && tt.name != "a large body" && matches(t, "request", tt.request) == nil {
				t.Error("the schema allows it")
			}
		})
	}
}

// The memory of a request must be granted before it is allocated. If the memory for the frames of
// an answer is refused, the answer must have the reason no_room.
func TestRequestsTakeNoMoreThanTheirRoom(t *testing.T) {
	frame := `{"build_id":"` + server + `","offset":"0x3fd7"}`
	other := `{"build_id":"` + server + `","offset":"0x3fa6"}`
	request := `{"frames":[` + frame + `,` + other + `]}`
	s := symbols(t)
	for _, n := range []int64{0, 10, int64(len(request)), int64(len(request)) + addressBytes, int64(len(request)) + 4*addressBytes} {
		s.Room = room(n)
		if got := answered(t, s, request); got != "*errors.errorString: "+ErrNoRoom.Error() {
			t.Errorf("with %d bytes got %s", n, got)
		}
	}
	s.Room = room(int64(len(request)) + 4*addressBytes + moduleBytes + 300)
	got := answered(t, s, request)
	if strings.Count(got, `{"reason":"no_room"}`) != 1 || strings.Count(got, `"frames":[{"function"`) != 1 {
		t.Errorf("got %s", got)
	}
	if err := matches(t, "response", got); err != nil {
		t.Error(err)
	}
}

// A hanging is a server that has the file of one build ID, and sends it after a delay. For other
// build IDs, it never answers.
type hanging struct {
	id    buildid.ID
	after time.Duration
	files symbolize.Finder
}

func (h *hanging) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	if q.ID != h.id {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(h.after):
	}
	return h.files.Find(ctx, q, note)
}

// Modules whose server never answers must not delay a module whose file arrives after 3 s.
func TestModulesDoNotWaitForEachOther(t *testing.T) {
	id, err := buildid.Parse([]byte(server))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{id: id, after: 3 * time.Second, files: buildid.NewTree(filepath.Join("..", "..", "testdata", "debug"))}
		s := symbolize.New(symbolize.Options{Servers: []symbolize.Finder{h}})
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		other, err := buildid.Parse([]byte("0011"))
		if err != nil {
			t.Fatal(err)
		}
		last, err := buildid.Parse([]byte("ff11"))
		if err != nil {
			t.Fatal(err)
		}
		answers, err := (&Symbols{Symbolizer: s, Room: room(1 << 20)}).Look(ctx, []symbolize.Location{{ID: other}, {ID: id, Addr: 0x3fd7}, {ID: last}, {ID: other, Addr: 1}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range answers {
			text := string(a.Reason)
			for _, f := range a.Frames {
				text += f.Func
			}
			got = append(got, text)
		}
		if diff := cmp.Diff([]string{"pending", "Server::run()", "pending", "pending"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A brokenReader fails like the connection of a client that was cut off.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestErrorsOfTheBodyAreReturned(t *testing.T) {
	_, err := Symbolize(t.Context(), symbols(t), brokenReader{})
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Unknown members must be skipped if they are valid JSON and not nested too deeply.
func TestUnknownMembersAreSkipped(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"a":[1,{"b":[null,true,"x"]}]}`, ""},
		{`{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`, ""},
		{`{"a":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + `}`, "the request is nested more than 64 levels deep"},
		{`{"a":[}`, "a: the body is not JSON: invalid character '}' looking for beginning of value"},
	} {
		r := NewReader(strings.NewReader(tt.text), room(1<<20))
		got := ""
		if err := r.Object(func(string) error { return r.Skip() }); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%.40s: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func FuzzSymbolize(f *testing.F) {
	f.Add(`{"frames":[{"build_id":"` + server + `","offset":"0x3fd7","return_address":true}]}`)
	f.Add(`{"frames":[{"build_id":"aabb","offset":7},{"build_id":"aabb","offset":"7"}]}`)
	s := symbolize.New(symbolize.Options{})
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, request string) {
		defer fuzztest.Watch(t, []byte(request))()
		write, err := Symbolize(t.Context(), &Symbols{Symbolizer: s, Room: room(1 << 20)}, strings.NewReader(request))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if err := matches(t, "response", b.String()); err != nil {
			t.Error(err)
		}
	})
}
