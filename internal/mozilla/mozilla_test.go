package mozilla

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/internal/batchtest"
)

const (
	serverModule = `["server","17CC43DA677C8642DC64206EEBED748F0"]`
	goneModule   = `["gone.so","000102030405060708090A0B0C0D0E0F0"]`
	// linked for 0x400000, with a build ID of 8 bytes
	fixedModule = `["fixed","A3A2A1A0A5A4A7A600000000000000000"]`
)

func TestRequestsOfProfilersAreAnswered(t *testing.T) {
	// unknown members are skipped, and stacks may precede their modules
	request := `{"version":5,"jobs":[
		{"memoryMap":[` + serverModule + `,` + goneModule + `,` + fixedModule + `,["unused",""]],"stacks":[[[0,16294],[1,16],[2,332],[-1,5]],[]]},
		{"stacks":[[[0,"0x3fd6"],[0,4294967295]]],"memoryMap":[["server","",null],["server","","DA43CC177C674286DC64206EEBED748FDE112BED"]]},
		{"memoryMap":[["libserver.so","DA43CC177C674286DC64206EEBED748FDE112BED"]],"stacks":[[[0,16342]]]}]}`
	want := batchtest.Indented(t, `{"results":[
		{"stacks":[[
			{"frame":0,"module_offset":"0x3fa6","module":"server","function":"Server::answer()","function_offset":"0x56","file":"/src/server/server.cc","line":41,
				"inlines":[{"function":"Server::cost(Request const&) const","file":"/src/server/server.cc","line":34}]},
			{"frame":1,"module_offset":"0x10","module":"gone.so"},
			{"frame":2,"module_offset":"0x14c","module":"fixed","function":"main","function_offset":"0x0","file":"/src/a.cpp","line":18},
			{"frame":3,"module_offset":"0x5","module":"<unknown>"}],[]],
		"found_modules":{"server/17CC43DA677C8642DC64206EEBED748F0":true,"gone.so/000102030405060708090A0B0C0D0E0F0":false,"fixed/A3A2A1A0A5A4A7A600000000000000000":true},
		"module_errors":{"gone.so/000102030405060708090A0B0C0D0E0F0":[{"name":"no_file","message":"no file with this ID was found"}]}},
		{"stacks":[[{"frame":0,"module_offset":"0x3fd6","module":"server"},{"frame":1,"module_offset":"0xffffffff","module":"server"}]],
		"found_modules":{"server/":false},
		"module_errors":{"server/":[{"name":"no_file","message":"no file with this ID was found"}]}},
		{"stacks":[[{"frame":0,"module_offset":"0x3fd6","module":"libserver.so","function":"Server::run()","function_offset":"0x26","file":"/src/server/server.cc","line":47}]],
		"found_modules":{"libserver.so/DA43CC177C674286DC64206EEBED748FDE112BED":true}}]}`)
	if diff := cmp.Diff(want, batchtest.Indented(t, batchtest.Answer(t, Symbolicate, batchtest.Symbols(t, 1<<20), request))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASingleJobIsARequest(t *testing.T) {
	want := `{"results":[{"stacks":[[{"frame":0,"module_offset":"0x14c","module":"fixed","function":"main","function_offset":"0x0","file":"/src/a.cpp","line":18}]],` +
		`"found_modules":{"fixed/A3A2A1A0A5A4A7A600000000000000000":true}}]}` + "\n"
	if got := batchtest.Answer(t, Symbolicate, batchtest.Symbols(t, 1<<20), `{"memoryMap":[`+fixedModule+`],"stacks":[[[0,332]]]}`); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRequestsThatCannotBeAnswered(t *testing.T) {
	for _, tt := range []struct{ name, request, want string }{
		{"nothing", ``, "*batch.InvalidError: the JSON in the body is missing or incomplete"},
		{"no jobs", `{}`, "*batch.InvalidError: the request has no jobs"},
		{"a list", `[]`, "*batch.InvalidError: an array, want an object"},
		{"two values", `{"jobs":[{}]}1`, "*batch.InvalidError: the body has more than one JSON value"},
		{"a module alone", `{"jobs":[{"memoryMap":[["a"]]}]}`, "*batch.InvalidError: jobs[0].memoryMap[0]: a module must be a list of its name and its debug ID"},
		{"a module without a name", `{"jobs":[{"memoryMap":[[null,"a"]]}]}`, "*batch.InvalidError: jobs[0].memoryMap[0][0]: null, want a string"},
		{"half a frame", `{"jobs":[{"stacks":[[[0]]]}]}`, "*batch.InvalidError: jobs[0].stacks[0][0]: a frame must be a list of its module's index and an offset"},
		{"a frame of three", `{"jobs":[{"stacks":[[[0,1,2]]]}]}`, "*batch.InvalidError: jobs[0].stacks[0][0][2]: a frame has two numbers"},
		{"a negative index", `{"jobs":[{"stacks":[[[-2,1]]]}]}`, "*batch.InvalidError: jobs[0].stacks[0][0][0]: -2 is not an index"},
		{"a module beyond the map", `{"jobs":[{"memoryMap":[` + serverModule + `],"stacks":[[],[[0,1],[1,1]]]}]}`,
			"*batch.InvalidError: jobs[0].stacks[1][1]: module 1 is not in the memoryMap, which has 1"},
		{"many jobs", `{"jobs":[` + strings.Repeat("{},", maxJobs) + `{}]}`, "*batch.TooLargeError: the request has more than 1000 jobs; send it in several requests"},
		{"many modules", `{"memoryMap":[` + strings.Repeat(serverModule+",", maxModules) + serverModule + `],"stacks":[]}`, "*batch.TooLargeError: the request has more than 10000 modules; send it in several requests"},
		{"many stacks", `{"stacks":[` + strings.Repeat("[],", maxStacks) + `[]]}`, "*batch.TooLargeError: the request has more than 100000 stacks; send it in several requests"},
		{"many frames", `{"stacks":[[` + strings.Repeat("[0,1],", maxFrames) + `[0,1]]]}`, "*batch.TooLargeError: the request has more than 100000 frames; send it in several requests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := batchtest.Answer(t, Symbolicate, batchtest.Symbols(t, 64<<20), tt.request); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if got := batchtest.Answer(t, Symbolicate, batchtest.Symbols(t, 100), `{"memoryMap":[`+serverModule+`],"stacks":[[[0,1]]]}`); got != "*errors.errorString: "+batch.ErrNoRoom.Error() {
		t.Errorf("without memory got %s", got)
	}
}

func FuzzSymbolicate(f *testing.F) {
	batchtest.Fuzz(f, Symbolicate,
		`{"jobs":[{"memoryMap":[`+serverModule+`],"stacks":[[[0,16294],[-1,1]]]}]}`,
		`{"memoryMap":[`+fixedModule+`,["a","b","c",{"d":[]}]],"stacks":[[[0,332],[1,"0x1"]]]}`,
	)
}
