package callgrind

import (
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// pprofText returns a profile in pprof's format as text, and the text after it.
func pprofText(t *testing.T, out string) string {
	t.Helper()
	in := strings.NewReader(out)
	z, err := gzip.NewReader(in)
	if err != nil {
		return out
	}
	z.Multistream(false)
	p, err := profile.Parse(z)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return p.String() + "default: " + p.DefaultSampleType + "\n" + string(rest)
}
