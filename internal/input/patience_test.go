package input_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/callgrind"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/rtrace"
	"github.com/symfilter/symfilter/symbolize"
	"github.com/symfilter/symfilter/valgrind"
)

// A hangs is a finder that never answers.
type hangs struct{}

func (hangs) Find(ctx context.Context, _ buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// libraries writes n copies of a library with different build IDs. The function outer is at 0x1370,
// local at 0x13b0.
func libraries(t *testing.T, n int) (names []string) {
	t.Helper()
	name := filepath.Join("..", "..", "symbolize", "testdata", "arch", "x86_64.elf")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	id, err := buildid.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range n {
		other := id.Bytes()
		other[0] += byte(i + 1)
		names = append(names, filepath.Join(dir, fmt.Sprintf("lib%d.so", i)))
		if err := os.WriteFile(names[i], bytes.ReplaceAll(data, id.Bytes(), other), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

func TestAHangingServerHoldsAnInputUpOnce(t *testing.T) {
	const wait = 2 * time.Second
	base := func(i int) uint64 { return 0x7f0000000000 + uint64(i)<<24 }
	valgrindReport := func(names []string) string {
		var b strings.Builder
		b.WriteString("<?xml version=\"1.0\"?>\n<valgrindoutput>\n<protocolversion>4</protocolversion>\n<protocoltool>memcheck</protocoltool>\n<tool>memcheck</tool>\n<args><vargv><exe>valgrind</exe></vargv><argv><exe>/bin/a</exe></argv></args>\n")
		for i, name := range names {
			for j, fn := range []string{"<fn>local</fn>\n", ""} { // the report's reader looks up the first frame, the filter the second
				fmt.Fprintf(&b, "<error>\n<unique>0x%x</unique>\n<kind>InvalidRead</kind>\n<what>x</what>\n<stack>\n<frame>\n<ip>0x%X</ip>\n<obj>%s</obj>\n%s</frame>\n</stack>\n</error>\n", 2*i+j, base(i)+0x13b0, name, fn)
			}
		}
		return b.String() + "</valgrindoutput>\n"
	}
	profile := func(names []string) string {
		var b strings.Builder
		b.WriteString("# callgrind format\nversion: 1\ncreator: test\npositions: instr line\nevents: Ir\n")
		for _, name := range names {
			fmt.Fprintf(&b, "\nob=%s\nfl=???\nfn=0x13b0\n0x13b0 0 10\n", name)
		}
		return b.String()
	}
	trace := func(names []string) string {
		var b strings.Builder
		b.WriteString("version=2.0, arch=x86_64, process=/bin/a, pid=312, origin=sp-rtrace 1.6\n")
		for i, name := range names {
			fmt.Fprintf(&b, ": %s => 0x%x-0x%x\n1. malloc(102) = 0x804b008\n\t0x%x\n\n", name, base(i)+0x1000, base(i)+0x2000, base(i)+0x13c1)
		}
		return b.String()
	}
	asText := func(w io.Writer, o symbolize.ReportOptions) *filter.Filter {
		return filter.New(w, filter.Options{Symbolizer: o.Symbolizer, Patience: filter.Patience{Local: o.Wait, Servers: o.Wait}})
	}
	valgrindOptions := func(o symbolize.ReportOptions, names []string) valgrind.Options {
		v := valgrind.Options{ReportOptions: o}
		for i, name := range names {
			v.Maps = append(v.Maps, valgrind.Bias(name, base(i)))
		}
		return v
	}
	for _, test := range []struct {
		name string
		in   func(names []string) string
		out  func(w io.Writer, o symbolize.ReportOptions, names []string) []io.WriteCloser // the results are closed in this order
	}{
		{"valgrind/json", valgrindReport, func(w io.Writer, o symbolize.ReportOptions, names []string) []io.WriteCloser {
			return []io.WriteCloser{valgrind.NewReport(w, valgrindOptions(o, names))}
		}},
		{"valgrind/text", valgrindReport, func(w io.Writer, o symbolize.ReportOptions, names []string) []io.WriteCloser {
			f := asText(w, o)
			o.Filter = f
			return []io.WriteCloser{valgrind.NewMarkup(f, valgrindOptions(o, names)), f}
		}},
		{"callgrind/json", profile, func(w io.Writer, o symbolize.ReportOptions, _ []string) []io.WriteCloser {
			return []io.WriteCloser{callgrind.NewReport(w, callgrind.Options{ReportOptions: o, Output: callgrind.JSON})}
		}},
		{"callgrind/table", profile, func(w io.Writer, o symbolize.ReportOptions, _ []string) []io.WriteCloser {
			return []io.WriteCloser{callgrind.NewReport(w, callgrind.Options{ReportOptions: o})}
		}},
		{"callgrind/profile", profile, func(w io.Writer, o symbolize.ReportOptions, _ []string) []io.WriteCloser {
			return []io.WriteCloser{callgrind.NewReport(w, callgrind.Options{ReportOptions: o, Output: callgrind.Profile})}
		}},
		{"rtrace/json", trace, func(w io.Writer, o symbolize.ReportOptions, _ []string) []io.WriteCloser {
			return []io.WriteCloser{rtrace.NewReport(w, rtrace.Options{ReportOptions: o, Output: rtrace.JSON})}
		}},
		{"rtrace/own form", trace, func(w io.Writer, o symbolize.ReportOptions, _ []string) []io.WriteCloser {
			return []io.WriteCloser{rtrace.NewReport(w, rtrace.Options{ReportOptions: o})}
		}},
		{"rtrace/text", trace, func(w io.Writer, o symbolize.ReportOptions, _ []string) []io.WriteCloser {
			f := asText(w, o)
			o.Filter = f
			return []io.WriteCloser{rtrace.NewMarkup(f, rtrace.Options{ReportOptions: o}), f}
		}},
	} {
		for _, n := range []int{1, 2, 6} {
			t.Run(fmt.Sprintf("%s, %d objects", test.name, n), func(t *testing.T) {
				names := libraries(t, n)
				synctest.Test(t, func(t *testing.T) {
					s := symbolize.New(symbolize.Options{Servers: []symbolize.Finder{hangs{}}})
					defer s.Close()
					var out bytes.Buffer
					writers := test.out(&out, symbolize.ReportOptions{Symbolizer: s, Wait: wait}, names)
					start := time.Now()
					for line := range strings.Lines(test.in(names)) {
						if _, err := io.WriteString(writers[0], line); err != nil {
							t.Fatal(err)
						}
					}
					for _, w := range writers {
						if err := w.Close(); err != nil {
							t.Fatal(err)
						}
					}
					if took := time.Since(start); took != wait {
						t.Errorf("it took %v, want %v; it printed:\n%s", took, wait, out.String())
					}
				})
			})
		}
	}
}
