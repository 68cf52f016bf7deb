package batch

import (
	"context"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
)

// A debug ID has the first 16 bytes of a build ID, in the byte order of a GUID.
func TestBuildIDsOfDebugIDs(t *testing.T) {
	whole := "da43cc177c674286dc64206eebed748fde112bed"
	known := map[string]string{"da43cc177c674286dc64206eebed748f": whole}
	asked := make(map[buildid.ID]int)
	s := &Symbols{Complete: func(prefix buildid.ID) (id buildid.ID) {
		asked[prefix]++
		if more, ok := known[prefix.String()]; ok {
			id, _ = buildid.Parse([]byte(more))
		}
		return id
	}}
	for _, tt := range []struct{ code, debug, want string }{
		{"", "17CC43DA677C8642DC64206EEBED748F0", whole},
		{"", "17cc43da677c8642dc64206eebed748f0", whole},
		{"", "17cc43da-677c-8642-dc64-206eebed748f", whole},
		{"", "17cc43da-677c-8642-dc64-206eebed748f-1f", whole},
		{"", "17cc43da677c8642dc64206eebed748f", whole},
		{"", "03020100050407060809 0A0B0C0D0E0F0", ""},
		{"", "0302010005040706" + "08090A0B0C0D0E0F0", "000102030405060708090a0b0c0d0e0f"},
		{"", "A3A2A1A0A5A4A7A600000000000000000", "a0a1a2a3a4a5a6a7"},
		{"", strings.Repeat("0", 33), ""},
		{"", whole, whole},
		{whole, "", whole},
		{"0011", "17CC43DA677C8642DC64206EEBED748F0", "0011"},
		{"libc", "17CC43DA677C8642DC64206EEBED748F0", whole},
		{"", "17CC43DA677C8642DC64206EEBED748", ""},
		{"", "17CC43DA677C8642DC64206EEBED748FG", ""},
		{"", "XXCC43DA677C8642DC64206EEBED748F0", ""},
		{"", "", ""},
	} {
		if got := s.Identify(t.Context(), tt.code, tt.debug).String(); got != tt.want {
			t.Errorf("code ID %q, debug ID %q: got %q, want %q", tt.code, tt.debug, got, tt.want)
		}
	}
	for prefix, n := range asked {
		if n != 1 {
			t.Errorf("the trees were searched %d times for %s", n, prefix)
		}
	}
	const late = "da43cc187c674286dc64206eebed748f"
	known[late] = whole
	ended, end := context.WithCancel(t.Context())
	end()
	if got := s.Identify(ended, "", "18CC43DA677C8642DC64206EEBED748F0").String(); got != late {
		t.Errorf("after the time is over: got %q, want %q", got, late)
	}
}
