package valgrind

import (
	"bytes"
	"encoding/json"
	"fmt"

	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/internal/escape"
)

// reportOf returns the JSON of a report. Each line of it must follow the schema.
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
	schema, err := jsonschema.NewCompiler().Compile("report.schema.json")
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

// scripts calls visit for each report of the records' scripts.
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

// The JSON has every text and every address of a report.
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
