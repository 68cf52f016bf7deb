package valgrind

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// recorded is the folder of Valgrind's reports of stripped programs, with the files of these
// programs.
const recorded = "testdata/recorded"

// recordedOptions returns the options with which a recorded report is resolved, and the folder of
// its files.
func recordedOptions(t *testing.T) (Options, string) {
	t.Helper()
	folder, err := filepath.Abs(recorded)
	if err != nil {
		t.Fatal(err)
	}
	sysroot := filepath.Join(t.TempDir(), "r") // short, since diagnostics cut long names
	if err := os.Symlink(folder, sysroot); err != nil {
		t.Fatal(err)
	}
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree(filepath.Join(sysroot, "debug")), buildid.ModulePath{}}})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return Options{ReportOptions: symbolize.ReportOptions{Symbolizer: s, Sysroot: sysroot, Wait: time.Minute}}, sysroot
}

var (
	otherRecords = regexp.MustCompile(`(?m)^.*"record":"[^eo][^\n]*\n|^.*"record":"errorcounts"[^\n]*\n`)
	pid          = regexp.MustCompile(`"pid":\d+,`) // missing in the first records
)

// The load biases must be inferred from names, lines and data in the report, from calls, and from
// signal handlers. The expected biases are from Valgrind's log. After ReadAhead, the output must be
// the same.
func TestRecordedReportsAreResolvedWithoutValgrind(t *testing.T) {
	for _, name := range []string{"names", "lines"} {
		t.Run(name, func(t *testing.T) {
			input, err := os.ReadFile(filepath.Join(recorded, name+".xml"))
			if err != nil {
				t.Fatal(err)
			}
			var got txtar.Archive
			o, sysroot := recordedOptions(t)
			add := func(name, text string) {
				text = strings.ReplaceAll(text, sysroot, "")
				got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(text)})
			}
			var diagnostics []string
			o.Diagnose = func(s string) { diagnostics = append(diagnostics, s+"\n") }
			json := reportOf(t, input, o)
			add("json", otherRecords.ReplaceAllString(json, ""))
			add("diagnostics", strings.Join(diagnostics, ""))
			o.Diagnose = nil
			markup := markupOf(t, input, len(input), o)
			add("markup", markup)
			o.Ahead = readAhead(t, input, o)
			ahead := reportOf(t, input, o)
			if diff := cmp.Diff(pid.ReplaceAllString(json, ""), pid.ReplaceAllString(ahead, "")); diff != "" {
				t.Errorf("after reading ahead, the JSON is different (-want +got):\n%s", diff)
			}
			o.Ahead = readAhead(t, input, o)
			if diff := cmp.Diff(markup, markupOf(t, input, len(input), o)); diff != "" {
				t.Errorf("after reading ahead, the markup is different (-want +got):\n%s", diff)
			}
			checkBiases(t, name, json)
			golden := filepath.Join(recorded, name+".txtar")
			want, err := os.ReadFile(golden)
			if err != nil && os.Getenv("UPDATE") == "" {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(txtar.Format(&got))); diff != "" {
				if os.Getenv("UPDATE") == "1" {
					if err := os.WriteFile(golden, txtar.Format(&got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				t.Errorf("got other output than want (-want +got):\n%s", diff)
			}
		})
	}
}

func readAhead(t *testing.T, input []byte, o Options) *Ahead {
	t.Helper()
	ahead, err := ReadAhead(bytes.NewReader(input), o)
	if err != nil {
		t.Fatal(err)
	}
	return ahead
}

func checkBiases(t *testing.T, name, out string) {
	t.Helper()
	log, err := os.Open(filepath.Join(recorded, name+".map"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	truth, err := ReadMap(log)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(recorded, "srv", "app", "*"+name+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		object := path.Join("/srv/app", filepath.Base(file))
		bias := `"bias":"0x` + strconv.FormatUint(truth.biases[object], 16) + `"`
		found := false
		for line := range strings.Lines(out) {
			found = found || strings.Contains(line, `"object":"`+object+`"`) && strings.Contains(line, bias)
		}
		if !found {
			t.Errorf("%s: no object with %s", object, bias)
		}
	}
	if len(files) == 0 {
		t.Errorf("no objects of %s", name)
	}
}

// A single name, line or variable in the report must suffice to locate an object that could be at
// three addresses.
func TestOneFactLocatesAnObject(t *testing.T) {
	frameOf := func(name, fn string) string {
		xml, err := os.ReadFile(filepath.Join(recorded, name+".xml"))
		if err != nil {
			t.Fatal(err)
		}
		_, before, ok := strings.Cut(string(xml), "\n      <fn>"+fn+"</fn>")
		frame := string(xml)[:len(xml)-len(before)]
		frame = frame[strings.LastIndex(frame, "<frame>"):]
		rest, _, _ := strings.Cut(before, "</frame>")
		if !ok {
			t.Fatalf("%s.xml has no frame of %s", name, fn)
		}
		return frame + rest + "</frame>"
	}
	variable := func() string {
		xml, err := os.ReadFile(filepath.Join(recorded, "names.xml"))
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`<auxwhat>.*data symbol.*</auxwhat>`).FindString(string(xml))
	}
	named := frameOf("names", "names::leaf(char const*, int)")
	bare := regexp.MustCompile(`\s*<fn>.*</fn>`).ReplaceAllString(named, "")
	withLine := frameOf("lines", "read_it")
	const unknown = "any of 3 load addresses is possible"
	for _, tt := range []struct {
		name, frame, after string
		noSymbols          bool
		want               string
	}{
		{"an address", bare, "", false, unknown},
		{"a name in the symbol table of the file", named, "", false, `"by":"facts"`},
		{"a variable", bare, variable(), false, `"by":"facts"`},
		{"a line in the debug information", withLine, "", false, `"by":"facts"`},
		{"a line of which no debug information is at hand", withLine, "", true, unknown},
	} {
		o, _ := recordedOptions(t)
		if tt.noSymbols {
			o.Symbolizer = nil
		}
		var got string
		o.Diagnose = func(s string) { got += s + "\n" }
		got += reportOf(t, []byte("<valgrindoutput>\n<error>\n<what>x</what>\n<stack>\n"+tt.frame+"\n</stack>\n"+tt.after+"\n</error>\n</valgrindoutput>\n"), o)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: want %s in\n%s", tt.name, tt.want, got)
		}
	}
}

// If a caller's address does not follow a call, a signal may have interrupted the code there. So
// the file is only doubted until the object of the next inner frame is located. If that object is
// never located, the file must be reported as not the file that ran.
func TestDoubtedFilesAreOtherFilesInTheEnd(t *testing.T) {
	const at = 0x4852000 // load address of prog.so
	var frames strings.Builder
	for _, rel := range []int{0x1377, 0x1379, 0x137b, 0x13b6} {
		fmt.Fprintf(&frames, "<frame>\n<ip>%#X</ip>\n<obj>/lib/other.so</obj>\n</frame>\n", 0x5000800) // other.so has no code in that part of a page
		fmt.Fprintf(&frames, "<frame>\n<ip>%#X</ip>\n<obj>/lib/prog.so</obj>\n</frame>\n", at+rel)
	}
	var diagnostics []string
	o := Options{ReportOptions: symbolize.ReportOptions{PrefixMap: fixtures(t), Diagnose: func(s string) { diagnostics = append(diagnostics, path.Base(s)) }}}
	reportOf(t, []byte("<valgrindoutput>\n<error>\n<stack>\n"+frames.String()+"</stack>\n</error>\n</valgrindoutput>\n"), o)
	if want := "x86_64.elf: " + errOtherFile.Error(); !slices.Contains(diagnostics, want) {
		t.Errorf("got %q, want %q", diagnostics, want)
	}
}
