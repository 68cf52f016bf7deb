package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

var (
	aaaa = strings.Repeat("a", 32)
	bbbb = strings.Repeat("b", 32)
	cccc = strings.Repeat("c", 32)
)

// named replaces A, B and C at the starts of lines by fingerprints, and each bar with the blanks
// around it by a TAB.
func named(s string) string {
	s = strings.NewReplacer("\nA", "\n"+aaaa, "\nB", "\n"+bbbb, "\nC", "\n"+cccc, " | ", "\t").Replace("\n" + s)
	return s[1:]
}

func entry(fingerprint, kind string) Entry {
	return Entry{Fingerprint: fingerprint, Kind: kind, Function: "f(int)", File: "f.cc", Program: "./f"}
}

func TestUpdatesOfBaselines(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		all  []Entry
		keep bool
		want string
	}{
		"a new file": {
			"# symfilter baseline 1: \n",
			[]Entry{entry(bbbb, "InvalidRead"), {Fingerprint: aaaa, Kind: "Overlap"}},
			false,
			"# symfilter baseline 1: valgrind\nA | Overlap | - | - | -\nB | InvalidRead | f(int) | f.cc | ./f\n",
		},
		"lines that stay are not changed": {
			"# symfilter baseline 1: valgrind\nA | Old | g | g.cc | ./g | until=2027-03-01 | see 12\nB\nC | gone\n",
			[]Entry{entry(bbbb, "InvalidRead"), entry(aaaa, "New")},
			false,
			"# symfilter baseline 1: valgrind\nA | Old | g | g.cc | ./g | until=2027-03-01 | see 12\nB\n",
		},
		"lines of errors that may be gone": {
			"# symfilter baseline 1: valgrind\nA | x\nC | x\nC | x\n",
			[]Entry{entry(bbbb, "y")},
			true,
			"# symfilter baseline 1: valgrind\nA | x\nB | y | f(int) | f.cc | ./f\nC | x\n",
		},
		"comments stay": {
			"# symfilter baseline 1: valgrind\n# of Anna\nA | x\n\n# of Bert\nB | x\n?? unknown\nC | x\n# end\n",
			[]Entry{entry(aaaa, "x"), entry(cccc, "x")},
			false,
			"# symfilter baseline 1: valgrind\n# of Anna\nA | x\n\n# of Bert\n?? unknown\nC | x\n# end\n",
		},
		"lines are sorted with their comments": {
			"# symfilter baseline 1: valgrind\n# of Cora\nC | x\n# of Anna\nA | x\n",
			[]Entry{entry(aaaa, "x"), entry(bbbb, "y"), entry(cccc, "x")},
			false,
			"# symfilter baseline 1: valgrind\n# of Anna\nA | x\nB | y | f(int) | f.cc | ./f\n# of Cora\nC | x\n",
		},
		"a file that was merged": {
			"# symfilter baseline 1: valgrind\n<<<<<<< ours\nA | x\n=======\nA | x\nA | x | f | until=2030-01-01\n>>>>>>> theirs\n",
			[]Entry{entry(aaaa, "x")},
			false,
			"# symfilter baseline 1: valgrind\n<<<<<<< ours\nA | x\n=======\nA | x | f | until=2030-01-01\n>>>>>>> theirs\n",
		},
		"line ends of Windows, no line end, and a byte order mark": {
			"\ufeff# symfilter baseline 1: log\r\nA | x\r\nB | y",
			[]Entry{entry(aaaa, "x"), entry(bbbb, "x")},
			false,
			"# symfilter baseline 1: valgrind\nA | x\nB | y\n",
		},
		"hostile names": {
			"# symfilter baseline 1: valgrind\n",
			[]Entry{{Fingerprint: aaaa, Kind: "a\tb", Function: "c\nd\x1b[2J", File: "until=2000-01-01", Program: strings.Repeat("é", 300)}},
			false,
			"# symfilter baseline 1: valgrind\nA | a\\x09b | c\\x0ad\\x1b[2J | until\\x3d2000-01-01 | " + strings.Repeat("é", 256) + "...\n",
		},
	} {
		b, err := ReadBaseline(strings.NewReader(named(test.file)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b.Update(test.all, []string{"valgrind"}, test.keep)
		got := string(b.Append(nil))
		if diff := cmp.Diff(named(test.want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		b, err = ReadBaseline(strings.NewReader(got))
		if err != nil {
			t.Errorf("%s: what was written: %v", name, err)
			continue
		}
		b.Update(test.all, nil, test.keep)
		if diff := cmp.Diff(got, string(b.Append(nil))); diff != "" {
			t.Errorf("%s: after another update (-want +got):\n%s", name, diff)
		}
	}
}

func TestEntriesOfBaselines(t *testing.T) {
	day := func(s string) time.Time {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for line, want := range map[string][]Entry{
		"A":                                   {{Fingerprint: aaaa}},
		"A | Kind | f(a, b) | f.cc | ./f | x": {{Fingerprint: aaaa, Kind: "Kind", Function: "f(a, b)", File: "f.cc", Program: "./f"}},
		"A | Kind | - | - | ./f | until=2027-03-01":  {{Fingerprint: aaaa, Kind: "Kind", Program: "./f", Until: day("2027-03-01")}},
		"A | Kind | f | x | until=2027-03-01 | more": {{Fingerprint: aaaa, Kind: "Kind", Function: "f", File: "x", Until: day("2027-03-01")}},
		// an editor has turned the TABs into blanks
		"A  Kind  f  until=2027-03-01": {{Fingerprint: aaaa, Kind: " Kind  f  ", Until: day("2027-03-01")}},
		"# A":                          nil,
		aaaa + "a | Kind":              nil,
		strings.ToUpper(aaaa):          nil,
		"":                             nil,
	} {
		b, err := ReadBaseline(strings.NewReader("# symfilter baseline 1: valgrind\n" + named(line)))
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		if diff := cmp.Diff(want, b.Entries()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

func TestFilesThatAreNoBaselines(t *testing.T) {
	for file, want := range map[string]string{
		"":                                   "its first line does not begin with",
		"A | Kind\n":                         "its first line does not begin with",
		"# symfilter baseline 2: valgrind\n": "its first line does not begin with",
		"# symfilter baseline 1: valgrind\nA | until=tomorrow\n":     "line 2: until=tomorrow: write a date",
		"# symfilter baseline 1: valgrind\n\nA | x until=2027-02-30": "line 3: until=2027-02-30: write a date",
		"# symfilter baseline 1: x\n" + strings.Repeat("\n", 1<<18):  "more than 262144 lines",
		"# symfilter baseline 1: x\n" + strings.Repeat("x", 16<<20):  "larger than 16 MiB",
	} {
		_, err := ReadBaseline(strings.NewReader(named(file)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q", file, err, want)
		}
	}
}

func TestForeignLinesOfBaselines(t *testing.T) {
	b, err := ReadBaseline(strings.NewReader(named("# symfilter baseline 1: x\n# a\n\nA | x\n<<<<<<< ours\n=======\n")))
	if err != nil || b.Foreign != 5 {
		t.Errorf("line %d, %v; want 5", b.Foreign, err)
	}
}

// FuzzBaseline checks for any file that an update with the same errors loses no line, and that
// ReadBaseline reads the result.
func FuzzBaseline(f *testing.F) {
	f.Add([]byte(named("# symfilter baseline 1: x\n# a\n\nA | x | until=2027-03-01\nB\n<<<<<<< ours\n")))
	f.Add([]byte("# symfilter baseline 1: x\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Watch(t, data)()
		b, err := ReadBaseline(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		all := b.Entries()
		for i := range all {
			all[i].Kind = "other"
		}
		lines := make(map[string]bool)
		for _, l := range b.lines {
			lines[l.text] = true
		}
		b.Update(all, nil, false)
		out := b.Append(nil)
		again, err := ReadBaseline(strings.NewReader(string(out)))
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%q", err, out)
		}
		for _, l := range again.lines {
			delete(lines, l.text)
		}
		if len(lines) > 0 {
			t.Fatalf("lines were lost: %v", lines)
		}
		if len(again.Entries()) > len(all) {
			t.Fatalf("%d entries of %d", len(again.Entries()), len(all))
		}
	})
}
