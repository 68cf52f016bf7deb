package valgrind

import (
	"bytes"
	"encoding/json"
	"fmt"

	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/testenv"
)

// reportOf returns the JSON of a report. Each line must match the schema.
func reportOf(t *testing.T, report []byte, o Options) string {
	t.Helper()
	var out bytes.Buffer
	w := NewReport(&out, o)
	if _, err := w.Write(report); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL("report.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		object, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if err := schema.Validate(object); err != nil {
			t.Errorf("%v in %s", err, line)
		}
	}
	return out.String()
}

// scripts calls visit for each report in testdata/records.
func scripts(t *testing.T, visit func(t *testing.T, report []byte)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "records", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d scripts, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			report := a.Files[0].Data
			if a.Files[0].Name == "quoted.xml" {
				report = unquoted(t, report)
			}
			visit(t, report)
		})
	}
}

func TestReportLosesNothing(t *testing.T) {
	scripts(t, func(t *testing.T, report []byte) {
		out := reportOf(t, report, Options{})
		var texts, ips []string
		r := NewReader(func(rec *Record) error {
			for _, text := range append([]Item{{Text: rec.Text}}, rec.Items...) {
				texts = append(texts, string(text.Text))
			}
			for _, f := range rec.Frames {
				if f.RawIP == nil {
					ips = append(ips, fmt.Sprintf(`"ip":"%#x"`, f.IP))
				}
				for _, s := range [][]byte{f.RawIP, f.Obj, f.Fn, f.Dir, f.File} {
					texts = append(texts, string(s))
				}
			}
			return nil
		})
		r.Write(report)
		r.Close()
		for _, text := range texts {
			quoted, _ := escape.AppendString(nil, text)
			if number, _ := json.Marshal(text); text != "" && !strings.Contains(out, string(quoted[1:len(quoted)-1])) {
				t.Errorf("%s is missing in\n%s", number, out)
			}
		}
		for _, ip := range ips {
			if i := strings.Index(out, ip); i < 0 {
				t.Errorf("%s is missing in\n%s", ip, out)
			}
		}
	})
}

// The member "what" must have an error's description in all forms of reports. The items must have
// the description, too.
func TestErrorsHaveTheirDescription(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"what", "<what>a &lt; b</what>", `"what":"a < b"`},
		{"xwhat", "<xwhat><text>a</text><hthreadid>1</hthreadid></xwhat>", `"what":"a"`},
		{"the first of two", "<xwhat><text>a</text></xwhat><what>b</what>", `"what":"a"`},
		{"two lines of text", "<xwhat><hthreadid>1</hthreadid><text>a</text><text>b</text></xwhat>", `"what":"a"`},
		{"empty", "<what></what>", `"what":""`},
		{"of an origin", "<stack></stack><what>a</what>", ``},
		{"nested", "<origin><what>a</what></origin>", ``},
		{"none", "<kind>a</kind>", ``},
	} {
		out := reportOf(t, []byte("<valgrindoutput><error>"+tt.in+"</error></valgrindoutput>"), Options{})
		if got := regexp.MustCompile(`"what":"[^"]*"`).FindString(out); got != tt.want {
			t.Errorf("%s: got %s, want %s in\n%s", tt.name, got, tt.want, out)
		}
	}
	if out := reportOf(t, []byte("<valgrindoutput><clientmsg><what>a</what></clientmsg></valgrindoutput>"), Options{}); strings.Contains(out, `"what":`) {
		t.Errorf("a message of the program got a description:\n%s", out)
	}
}

func TestReportsHaveASummary(t *testing.T) {
	const stated = "<leak_summary><definitely_lost><bytes>1,048</bytes><blocks>2</blocks></definitely_lost></leak_summary>"
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "<pid>1</pid>", ""},
		{"no errors", "<errorcounts></errorcounts>", `{"errors":0,"contexts":0,"suppressed":0,"suppressions":0}`},
		{"counts", "<errorcounts><pair><count>3</count><unique>0x1</unique></pair><pair><count>2</count><unique>0x2</unique></pair></errorcounts><suppcounts><pair><count>7</count><name>a</name></pair></suppcounts>",
			`{"errors":5,"contexts":2,"suppressed":7,"suppressions":1}`},
		{"leaks", "<error><kind>Leak_DefinitelyLost</kind><what>296 (96 direct, 200 indirect) bytes in 2 blocks</what><leakedbytes>296</leakedbytes><leakedblocks>2</leakedblocks></error>",
			`{"leaks":{"definitely_lost":{"bytes":96,"blocks":2},"indirectly_lost":{"bytes":200}}}`},
		{"protocol 6", stated + "<errorcounts></errorcounts><error_summary><errors>1</errors><error_contexts>1</error_contexts><suppressed>4</suppressed><suppressed_contexts>3</suppressed_contexts></error_summary>",
			`{"errors":1,"contexts":1,"suppressed":4,"suppressed_contexts":3,"suppressions":0,"leaks":{"definitely_lost":{"bytes":1048,"blocks":2}}}`},
		{"counts beyond 64 bits", "<errorcounts><pair><count>18446744073709551000</count></pair><pair><count>1000</count></pair></errorcounts>",
			`{"errors":18446744073709551615,"contexts":2,"suppressed":0,"suppressions":0}`},
	} {
		out := reportOf(t, []byte("<valgrindoutput>"+tt.in+"</valgrindoutput>"), Options{})
		m := regexp.MustCompile(`"record":"summary","summary":(.*)}\n.*"record":"/valgrindoutput"}\n$`).FindStringSubmatch(out)
		if got := strings.Join(m[min(1, len(m)):], ""); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
