package symbolicator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/internal/batchtest"
)

const serverModule = `{"type":"elf","code_id":"da43cc177c674286dc64206eebed748fde112bed","code_file":"/opt/shop/server","image_addr":"0x555555554000","image_size":40960}`

func TestStackTracesAreSymbolicated(t *testing.T) {
	request := `{"platform":"native","signal":11,"sources":[{"id":"x","type":"http","url":"http://127.0.0.1:1/"}],"options":{"dif_candidates":true},
		"stacktraces":[{"registers":{"rip":"0x555555557fa6"},"frames":[
			{"instruction_addr":"0x555555557fa6","trust":"context"},{"instruction_addr":"0x555555557fd7"},{"instruction_addr":"0x7fff00000010"},
			{"instruction_addr":"0x10"},{"instruction_addr":"0x14c","addr_mode":"rel:2","adjust_instruction_addr":"no"},
			{"instruction_addr":"0x55555555dfff"},{"instruction_addr":"0x1","addr_mode":"rel:9"},{"instruction_addr":"0x600001","addr_mode":"abs"}]},{}],
		"modules":[` + serverModule + `,
			{"type":"elf","debug_id":"03020100-0504-0706-0809-0a0b0c0d0e0f","image_addr":"0x7fff00000000"},
			{"type":"elf","debug_id":"a3a2a1a0-a5a4-a7a6-0000-000000000000","debug_file":"fixed","image_addr":"0x400000","image_size":"0x2000"},
			{"type":"pe","debug_id":"17CC43DA677C8642DC64206EEBED748F0","image_addr":"0x600000","image_size":4096},
			{"type":"elf","image_addr":"0x800000","image_size":4096}]}`
	server := `"package":"/opt/shop/server",`
	want := batchtest.Indented(t, `{"status":"complete","stacktraces":[{"frames":[
		{"status":"symbolicated","original_index":0,"instruction_addr":"0x555555557fa6",`+server+`"symbol":"_ZNK6Server4costERK7Request","function":"Server::cost(Request const&) const",
			"filename":"server/server.cc","abs_path":"/src/server/server.cc","lineno":34},
		{"status":"symbolicated","original_index":0,"instruction_addr":"0x555555557fa6",`+server+`"sym_addr":"0x555555557f50","symbol":"_ZN6Server6answerEv","function":"Server::answer()",
			"filename":"server/server.cc","abs_path":"/src/server/server.cc","lineno":41},
		{"status":"symbolicated","original_index":1,"instruction_addr":"0x555555557fd7",`+server+`"sym_addr":"0x555555557fb0","symbol":"_ZN6Server3runEv","function":"Server::run()",
			"filename":"server/server.cc","abs_path":"/src/server/server.cc","lineno":47},
		{"status":"missing","original_index":2,"instruction_addr":"0x7fff00000010"},
		{"status":"unknown_image","original_index":3,"instruction_addr":"0x10"},
		{"status":"symbolicated","original_index":4,"instruction_addr":"0x14c","addr_mode":"rel:2","sym_addr":"0x14c","symbol":"main","function":"main",
			"filename":"a.cpp","abs_path":"/src/a.cpp","lineno":18},
		{"status":"missing_symbol","original_index":5,"instruction_addr":"0x55555555dfff",`+strings.TrimSuffix(server, ",")+`},
		{"status":"unknown_image","original_index":6,"instruction_addr":"0x1"},
		{"status":"missing","original_index":7,"instruction_addr":"0x600001"}]},{"frames":[]}],
		"modules":[
		{"debug_status":"found","type":"elf","code_id":"da43cc177c674286dc64206eebed748fde112bed","code_file":"/opt/shop/server","image_addr":"0x555555554000","image_size":40960},
		{"debug_status":"missing","type":"elf","debug_id":"03020100-0504-0706-0809-0a0b0c0d0e0f","image_addr":"0x7fff00000000"},
		{"debug_status":"found","type":"elf","debug_id":"a3a2a1a0-a5a4-a7a6-0000-000000000000","debug_file":"fixed","image_addr":"0x400000","image_size":8192},
		{"debug_status":"missing","type":"pe","debug_id":"17CC43DA677C8642DC64206EEBED748F0","image_addr":"0x600000","image_size":4096},
		{"debug_status":"unused","type":"elf","image_addr":"0x800000","image_size":4096}]}`)
	if diff := cmp.Diff(want, batchtest.Indented(t, batchtest.Answer(t, Symbolicate, batchtest.Symbols(t, 1<<20), request))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// In the order caller_first, the innermost frame must be the last one, and inlined calls must
// follow their callers.
func TestTheOrderOfFramesIsThatOfTheRequest(t *testing.T) {
	request := `{"options":{"frame_order":"caller_first"},"modules":[` + serverModule + `],"threads":[{"frames":[{"instruction_addr":"0x555555557fd7"},{"instruction_addr":"0x555555557fa6"}]}]}`
	var answer struct {
		Stacktraces []struct{ Frames []struct{ Function string } }
	}
	if err := json.Unmarshal([]byte(batchtest.Answer(t, Symbolicate, batchtest.Symbols(t, 1<<20), request)), &answer); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range answer.Stacktraces[0].Frames {
		got = append(got, f.Function)
	}
	if diff := cmp.Diff([]string{"Server::run()", "Server::answer()", "Server::cost(Request const&) const"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestsThatCannotBeAnswered(t *testing.T) {
	many := func(before, one string, n int, after string) string {
		return before + strings.Repeat(one+",", n) + one + after
	}
	for _, tt := range []struct{ name, request, want string }{
		{"nothing", ``, "*batch.InvalidError: the JSON in the body is missing or incomplete"},
		{"no stacks", `{"modules":[]}`, "*batch.InvalidError: the request has no stacktraces"},
		{"no address", `{"stacktraces":[{"frames":[{}]}]}`, "*batch.InvalidError: stacktraces[0].frames[0]: the frame has no instruction_addr"},
		{"another address", `{"stacktraces":[{"frames":[{"instruction_addr":null}]}]}`, "*batch.InvalidError: stacktraces[0].frames[0].instruction_addr: null, want a number"},
		{"another mode", `{"stacktraces":[{"frames":[{"addr_mode":"rel:x"}]}]}`, `*batch.InvalidError: stacktraces[0].frames[0].addr_mode: "rel:x" is neither abs nor rel:N, where N is the index of a module`},
		{"half a mode", `{"stacktraces":[{"frames":[{"addr_mode":"rel:"}]}]}`, `*batch.InvalidError: stacktraces[0].frames[0].addr_mode: "rel:" is neither abs nor rel:N, where N is the index of a module`},
		{"two values", `{"stacktraces":[]}[]`, "*batch.InvalidError: the body has more than one JSON value"},
		{"many modules", many(`{"modules":[`, `{}`, maxModules, `]}`), "*batch.TooLargeError: the request has more than 10000 modules"},
		{"many stacks", many(`{"stacktraces":[`, `{}`, maxStacks, `]}`), "*batch.TooLargeError: the request has more than 10000 stacktraces"},
		{"many frames", many(`{"stacktraces":[{"frames":[`, `{"instruction_addr":1}`, maxFrames, `]}]}`), "*batch.TooLargeError: the request has more than 100000 frames"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := batchtest.Answer(t, Symbolicate, batchtest.Symbols(t, 64<<20), tt.request); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if got := batchtest.Answer(t, Symbolicate, batchtest.Symbols(t, 300), `{"modules":[`+serverModule+`],"stacktraces":[]}`); got != "*errors.errorString: "+batch.ErrNoRoom.Error() {
		t.Errorf("without memory got %s", got)
	}
}

func FuzzSymbolicate(f *testing.F) {
	batchtest.Fuzz(f, Symbolicate,
		`{"modules":[`+serverModule+`],"stacktraces":[{"frames":[{"instruction_addr":"0x555555557fa6"},{"instruction_addr":7,"addr_mode":"rel:0"}]}]}`,
		`{"modules":[{"image_addr":"0x10"},{"image_addr":5,"type":[]}],"threads":[{"frames":[{"instruction_addr":"18446744073709551615"}]}],"options":{"frame_order":"caller_first"}}`,
	)
}
