package callgrind

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// records reads a profile in blocks of the given size. It returns the records and diagnostics, one
// in each line.
func records(profile []byte, block int) string {
	var b strings.Builder
	var r *recordReader
	place := func(p *codePlace) {
		fmt.Fprintf(&b, " %s|%s|%s", r.Text(p.Object), r.Text(p.File), r.Text(p.Function))
		if p.Source != p.File {
			fmt.Fprintf(&b, " in %s", r.Text(p.Source))
		}
		if p.Addr != 0 {
			fmt.Fprintf(&b, " %#x", p.Addr)
		}
		fmt.Fprintf(&b, ":%d", p.codePosition.Line)
	}
	costs := func(rec *record) {
		for i, n := range rec.Costs {
			fmt.Fprintf(&b, " %s=%d", r.Events()[i].Name, n)
		}
		b.WriteByte('\n')
	}
	r = newReader(func(rec *record) error {
		switch rec.Kind {
		case documentRecord:
			b.WriteString("document\n")
		case partRecord:
			b.WriteString("part\n")
		case headerRecord:
			fmt.Fprintf(&b, "header %s: %s\n", rec.Key, rec.Value)
		case costRecord:
			b.WriteString("cost")
			place(&rec.codePlace)
			costs(rec)
		case callRecord:
			b.WriteString("call")
			place(&rec.codePlace)
			fmt.Fprintf(&b, " -> %d×", rec.Count)
			place(&rec.To)
			costs(rec)
		case jumpRecord:
			b.WriteString("jump")
			place(&rec.codePlace)
			fmt.Fprintf(&b, " -> %d", rec.Count)
			if rec.Conditional {
				fmt.Fprintf(&b, "/%d", rec.Executed)
			}
			b.WriteString("×")
			place(&rec.To)
			b.WriteByte('\n')
		}
		return nil
	}, func(s string) { b.WriteString("! " + s + "\n") }, nil)
	for len(profile) > 0 {
		n := min(len(profile), block)
		r.Write(profile[:n])
		profile = profile[n:]
	}
	r.Close()
	for _, e := range r.Derived() {
		fmt.Fprintf(&b, "event %s = %s (%s)\n", e.Name, e.Formula, e.Long)
	}
	return b.String()
}

// Each script in testdata/records has a profile, and the records that must be read from it.
func TestProfilesAreReadWhole(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "records", "*.txtar"))
	if err != nil || len(names) < 15 {
		t.Fatalf("%d scripts, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			profile, want := a.Files[0].Data, string(a.Files[1].Data)
			if a.Files[0].Name == "cut" { // the last line has no line end
				profile = profile[:len(profile)-1]
			}
			for _, block := range []int{1, 7, len(profile)} {
				got := records(profile, block)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("in blocks of %d (-want, +got):\n%s", block, d)
				}
			}
			withCR := strings.ReplaceAll(string(profile), "\n", "\r\n")
			if d := cmp.Diff(want, records([]byte(withCR), 100)); d != "" && a.Files[0].Name != "cut" {
				t.Errorf("with carriage returns (-want, +got):\n%s", d)
			}
		})
	}
}

// A defect that is found after the last line must be reported for the whole profile, without a line
// number. Line numbers begin at 1.
func TestComplaintsAfterTheLastLineHaveNoNumber(t *testing.T) {
	var got []string
	r := newReader(func(*record) error { return nil }, func(s string) { got = append(got, s) }, nil)
	r.complain("names", "exceeds the memory")
	if _, err := r.Write([]byte("events: Ir\nnonsense\n")); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != "the profile exceeds the memory" || !strings.HasPrefix(got[1], "line 2 ") {
		t.Errorf("%q", got)
	}
}
