package valgrind

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// show prints a record in the form of the scripts: a line for each item, with frames after their
// stack.
func show(b *strings.Builder, r *Record) {
	fmt.Fprintf(b, "%s", r.Name)
	if r.Text != nil {
		fmt.Fprintf(b, " %q", r.Text)
	}
	if r.Continued {
		b.WriteString(" continued")
	}
	if r.Cut {
		b.WriteString(" cut")
	}
	b.WriteByte('\n')
	for _, it := range r.Items {
		b.WriteString(strings.Repeat("  ", it.Depth+1))
		b.WriteString(it.Name)
		if it.Leaf {
			fmt.Fprintf(b, " %q", it.Text)
		}
		b.WriteByte('\n')
		if it.Name != "stack" {
			continue
		}
		for _, f := range r.Frames[it.First:it.Last] {
			b.WriteString(strings.Repeat("  ", it.Depth+2))
			if f.RawIP != nil {
				fmt.Fprintf(b, "%q", f.RawIP)
			} else {
				fmt.Fprintf(b, "%#x", f.IP)
			}
			for _, s := range [][]byte{f.Obj, f.Fn, f.Dir, f.File} {
				if s != nil {
					fmt.Fprintf(b, " %s", s)
				} else {
					b.WriteString(" -")
				}
			}
			if f.Line != 0 {
				fmt.Fprintf(b, " %d", f.Line)
			}
			b.WriteByte('\n')
		}
	}
}

// records returns the records of a report written in blocks of this size.
func records(report []byte, block int) string {
	var b strings.Builder
	r := NewReader(func(rec *Record) error { show(&b, rec); return nil })
	for len(report) > 0 {
		n := min(block, len(report))
		r.Write(report[:n])
		report = report[n:]
	}
	r.Close()
	return b.String()
}

// unquoted decodes the escapes of Go's strings.
func unquoted(t *testing.T, b []byte) []byte {
	t.Helper()
	text := strings.ReplaceAll(strings.TrimSuffix(string(b), "\n"), "\n", `\n`)
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

// The Reader must find the records that a script lists for its report.
func TestReaderFindsTheRecords(t *testing.T) {
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
			report, want := a.Files[0].Data, string(a.Files[1].Data)
			if a.Files[0].Name == "quoted.xml" { // has the escapes of Go's strings, and no final line end
				report = unquoted(t, report)
			}
			got := records(report, len(report))
			if os.Getenv("UPDATE") == "1" && got != want {
				a.Files[1].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("got other records than want (-want +got):\n%s", diff)
			}
			for _, block := range []int{1, 7, 64} {
				if in := records(report, block); in != got {
					t.Errorf("in blocks of %d bytes (-whole +blocks):\n%s", block, cmp.Diff(got, in))
				}
			}
		})
	}
}
