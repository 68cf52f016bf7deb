package markup

import "testing"

// FuzzLeadingBT compares LeadingBT with the Scanner: both find the same bt at the beginning of a
// line, or none.
func FuzzLeadingBT(f *testing.F) {
	for _, line := range []string{
		"", "{{{bt", "{{{bt:", "{{{bt:0:0x12}}}", "{{{bt:0:0x12}}} {{{pc:1}}}", "{{{bt:7:0xABC:ra}}}}", "{{{bt:7:0:sp 0x1}}", "{{{bt:1:0x1:{{{}}}",
		"{{{bt:{{{bt:0:0x1}}}", "{{{bt:0:0x1}a}}}", "{{{bt:x:0x1}}}", "{{{bt:0:0x1{{{}}}", "{{{{bt:0:0x1}}}", "{{{pc:0x1}}}", "{{{bt}}}", "{{{bt:0:0x1\x1b[1m}}}",
		"{{{bt:1:0x12:sp 0x3f}}}", "{{{bt:1:0x12:ra:a:b}}}", "{{{bt:1:0x12:ra:}}}",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, message, n := LeadingBT(line)
		got.Message = string(message)
		var s Scanner
		s.Reset(line)
		tok, _ := s.Next()
		if tok.Kind != Elem || tok.Tag != TagBT {
			if n != 0 {
				t.Fatalf("%q: found %v, the scanner does not", line, got)
			}
			return
		}
		want, err := ParseAs[BT](tok.Fields)
		if err != nil || got != want || n != len(tok.Raw) {
			t.Fatalf("%q: got %v of %d bytes, want %v of %d, %v", line, got, n, want, len(tok.Raw), err)
		}
	})
}
