package valgrind

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/symbolize"
)

// A report in ISO 8859-1 must be converted to UTF-8. Bytes in an unsupported encoding must be
// unchanged, and the encoding must be reported once. Text of the program between records must never
// be converted.
func TestEncodingsOfReports(t *testing.T) {
	const body = "\n<valgrindoutput>\n<protocolversion>4</protocolversion>\n<pid>7</pid>\n<tool>memcheck</tool>\ncaf\xe9 printed\n" +
		"<error><unique>0x0</unique><kind>InvalidRead</kind><what>na\xefve &#233;</what><stack>\n" +
		"<frame><ip>0x10</ip><obj>/opt/caf\xe9</obj><fn>\xe9t\xe9</fn><dir>/\xfc</dir><file>\xe9.c</file><line>3</line></frame>\n" +
		"</stack>\n<suppression><rawtext>\n<![CDATA[\n{\n  \xe9t\xe9\n}\n]]>\n</rawtext></suppression></error>\n</valgrindoutput>\n"
	const latin = "/opt/café été /ü é.c naïve é {\n  été\n}"
	const bytesKept = "/opt/caf\xe9 \xe9t\xe9 /\xfc \xe9.c na\xefve é {\n  \xe9t\xe9\n}"
	tests := []struct {
		declaration, want string
		told              bool
	}{
		{`<?xml version="1.0" encoding="ISO-8859-1"?>`, latin, false},
		{`<?xml version='1.0' encoding = 'latin1' standalone='yes'?>`, latin, false},
		{`<?xml version="1.0"?>`, bytesKept, false},
		{`<?xml version="1.0" encoding="utf-8"?>`, bytesKept, false},
		{`<?xml version="1.0" encoding="KOI8-R"?>`, bytesKept, true},
		{`<?xml version="1.0" encoding="ISO-8859-1"?><?xml version="1.0"?>`, bytesKept, false},
		{`<?xml version="1.0" encoding=?>`, bytesKept, false},
	}
	for _, tt := range tests {
		for _, block := range []int{1, 7, 1 << 20} {
			var got, printed string
			r := NewReader(func(rec *Record) error {
				switch {
				case rec.Name == "error":
					f := rec.Frames[0]
					got = fmt.Sprintf("%s %s %s %s %s", f.Obj, f.Fn, f.Dir, f.File, rec.Get("what"))
					for i := range rec.Items {
						if it := &rec.Items[i]; it.Name == "rawtext" {
							got += " " + string(it.Text)
						}
					}
				case rec.Name == "" && len(rec.Text) > 0:
					printed += string(rec.Text)
				}
				return nil
			})
			for text := []byte(tt.declaration + body); len(text) > 0; text = text[min(block, len(text)):] {
				if _, err := r.Write(text[:min(block, len(text))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || printed != "caf\xe9 printed" {
				t.Errorf("%s in blocks of %d: printed %q (-want +got):\n%s", tt.declaration, block, printed, diff)
			}
		}
		var diagnostics []string
		var out bytes.Buffer
		w := NewXML(&out, Options{ReportOptions: symbolize.ReportOptions{Diagnose: func(s string) { diagnostics = append(diagnostics, s) }}})
		if _, err := w.Write([]byte(tt.declaration + body + tt.declaration + body)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		checkWellFormed(t, out.String())
		told := 0
		for _, s := range diagnostics {
			if strings.Contains(s, `in the encoding "KOI8-R"`) {
				told++
			}
		}
		if want := map[bool]int{true: 1}[tt.told]; told != want {
			t.Errorf("%s: told %d times, want %d: %q", tt.declaration, told, want, diagnostics)
		}
		if tt.want == latin && !strings.Contains(out.String(), "<fn>été</fn>") {
			t.Errorf("%s: written again as\n%s", tt.declaration, out.String())
		}
	}
}
