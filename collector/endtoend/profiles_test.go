//go:build linux

package endtoend

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/symfilter/symfilter/collector/internal/conformance"
	"github.com/symfilter/symfilter/internal/testenv"
)

// profilesConfig is the configuration of a Collector that names profiles by the debug files of
// trees, and appends them to a file.
func profilesConfig(listen, out string, trees ...string) string {
	return "receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: " + listen + "\n" +
		"processors:\n  symfilter:\n    patience:\n      local: 20s\n    symbols:\n      debug_file_directories:\n        - " + strings.Join(trees, "\n        - ") + "\n" +
		toFile(out) +
		"service:\n  pipelines:\n    profiles:\n      receivers:\n        - otlp\n      processors:\n        - symfilter\n      exporters:\n        - file\n"
}

// send posts a batch of profiles by OTLP: a request has the same fields as ProfilesData. It reports
// whether the Collector has accepted the batch.
func send(t *testing.T, address string, p pprofile.Profiles) bool {
	t.Helper()
	body, err := new(pprofile.ProtoMarshaler).MarshalProfiles(p)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post("http://"+address+"/v1development/profiles", "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// profilesIn returns the complete batches in the files of file exporters.
func profilesIn(t *testing.T, files ...string) (all []pprofile.Profiles) {
	t.Helper()
	var unmarshal pprofile.JSONUnmarshaler
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break
			}
			p, err := unmarshal.UnmarshalProfiles(line)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}

// A place is a call with its source position, in the JSON of llvm-symbolizer and in profiles.
type place struct {
	FunctionName, FileName string
	Line, Column           int64
}

// llvmPlaces returns the calls at link-time addresses of a file, the innermost first. An address
// without a function has no calls.
func llvmPlaces(t *testing.T, file string, addrs []uint64, flags ...string) [][]place {
	t.Helper()
	var in, stderr strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	cmd := exec.Command("llvm-symbolizer-19", append(flags, "--obj="+file, "--inlines", "--output-style=JSON")...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	var all [][]place
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var answer struct{ Symbol []place }
		if err := d.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(answer.Symbol, func(p place) bool { return p.FunctionName != "" }) {
			answer.Symbol = nil
		}
		all = append(all, answer.Symbol)
	}
	if len(all) != len(addrs) {
		t.Fatalf("%s answers %d of %d addresses", cmd, len(all), len(addrs))
	}
	return all
}

// oldRust matches symbols of Rust's older scheme, which end in a hash.
var oldRust = regexp.MustCompile(`^_ZN.*17h[0-9a-f]{16}E`)

// wanted returns the calls that llvm-symbolizer finds at each location of a recording: in the
// program's build with symbols, and in the system's debug files of libraries, if there are any.
func wanted(t *testing.T, r *recording, s spinner, p pprofile.Profiles) [][]place {
	t.Helper()
	d := p.Dictionary()
	want := make([][]place, d.LocationTable().Len())
	for i := range r.maps {
		m := &r.maps[i]
		file := s.whole
		if m.id != s.id {
			file = filepath.Join("/usr/lib/debug/.build-id", m.id[:2], m.id[2:]+".debug")
			if _, err := os.Stat(file); err != nil {
				continue
			}
		}
		var addrs []uint64
		var at []int
		for j, l := range d.LocationTable().All() {
			if r.mapped(l.Address()) == m {
				addrs, at = append(addrs, m.linked(t, l.Address())), append(at, j)
			}
		}
		raw := llvmPlaces(t, file, addrs, "--no-demangle")
		for j, places := range llvmPlaces(t, file, addrs) {
			if inPLT(t, m.file, addrs[j]) {
				continue // llvm-symbolizer finds the function before the table
			}
			for k := range places { // llvm-symbolizer does not demangle Rust's older scheme
				if name := raw[j][k].FunctionName; oldRust.MatchString(name) {
					places[k].FunctionName = name
				}
			}
			want[at[j]] = places
		}
	}
	return want
}

// inPLT reports whether a link-time address of a file is in its procedure linkage table.
func inPLT(t *testing.T, file string, addr uint64) bool {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return slices.ContainsFunc(f.Sections, func(s *elf.Section) bool { return strings.HasPrefix(s.Name, ".plt") && addr-s.Addr < s.Size })
}

// placesOf returns the calls at each location of a profile. It names a function by its linkage name
// if raw matches that name, and otherwise by its demangled name.
func placesOf(d pprofile.ProfilesDictionary, raw *regexp.Regexp) [][]place {
	all := make([][]place, d.LocationTable().Len())
	str := d.StringTable().At
	for i, l := range d.LocationTable().All() {
		for _, line := range l.Lines().All() {
			f := d.FunctionTable().At(int(line.FunctionIndex()))
			name := str(int(f.NameStrindex()))
			if linked := str(int(f.SystemNameStrindex())); raw.MatchString(linked) {
				name = linked
			}
			all[i] = append(all[i], place{name, str(int(f.FilenameStrindex())), line.Line(), line.Column()})
		}
	}
	return all
}

// samePlace reports whether two places are equal. glibc gives a function a second symbol, with the
// prefix __GI_, for calls in the library itself.
func samePlace(a, b place) bool {
	a.FunctionName, b.FunctionName = strings.TrimPrefix(a.FunctionName, "__GI_"), strings.TrimPrefix(b.FunctionName, "__GI_")
	return a == b
}

// perf profiles stripped programs in C, C++ and Rust. A Collector with the processor must add the
// calls that llvm-symbolizer finds in the builds with symbols, and the symbols that perf finds
// there. pprof and speedscope must show these names.
func TestProfilesOfStrippedProgramsAreNamed(t *testing.T) {
	testenv.OnlyLong(t)
	testenv.Need(t, "perf", "llvm-symbolizer-19")
	dir := t.TempDir()
	address, out := testenv.FreeAddress(t), filepath.Join(dir, "out.json")
	c := startCollector(t, profilesConfig(address, out, filepath.Join(dir, "debug"), "/usr/lib/debug"))
	sent := 0
	for source, hot := range map[string][]string{
		"spin.c":  {"mix", "work", "compare"},
		"spin.cc": {"shop::Box<unsigned long>::weigh(int) const", "shop::Shelf::find(int)", "main"},
		"spin.rs": {"<spin::Circle as spin::Shape>::area", "spin::total", "<spin::Square as spin::Shape>::area", "spin::main"},
	} {
		t.Run(source, func(t *testing.T) {
			s := newSpinner(t, dir, source)
			r := recorded(t, s.program)
			if !send(t, address, r.profiles(source)) {
				t.Fatal("the Collector has not accepted the profile")
			}
			sent++
			eventually(t, "the profile has come", func() bool { return len(profilesIn(t, out)) == sent }, c.log)
			p := profilesIn(t, out)[sent-1]
			if v := conformance.Check(p); v != nil {
				t.Errorf("violations of OTLP's rules: %q", v)
			}
			got := placesOf(p.Dictionary(), oldRust)
			if diff := cmp.Diff(wanted(t, r, s, p), got, cmp.Comparer(samePlace)); diff != "" {
				t.Errorf("calls (-llvm-symbolizer +Collector):\n%s", diff)
			}
			r.wantSymbols(t, s, p)
			wantShown(t, dir, p, hot)
		})
	}
}
