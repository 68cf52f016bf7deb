//go:build linux

package integration

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namesInXML   = regexp.MustCompile(`(?s)\s*<(fn|dir|file|line)>[^<]*</\w+>`)
	exportedName = regexp.MustCompile(`(?m)^(\w+) \w (\w+)`)
)

// A signal handler returns to a trampoline that nothing calls, and the interrupted code follows no
// call. If both are in libc, the stack must not refute libc: its frames must have the names that
// Valgrind prints.
func TestFramesBelowSignalHandlersHaveTheNamesOfTheirTwins(t *testing.T) {
	need(t, "valgrind", "gcc", "g++", "strip", "nm")
	for name, build := range map[string][]string{
		"C_O0": with(gcc, "-O0"), "C_O2": with(gcc, "-O2"), "C++_O0": with(gxx, "-O0", "-x", "c++"), "C++_O2": with(gxx, "-O2", "-x", "c++"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			full, bare := filepath.Join(dir, "full"), filepath.Join(dir, "bare")
			if err := errors.Join(os.Mkdir(full, 0o755), os.Mkdir(bare, 0o755)); err != nil {
				t.Fatal(err)
			}
			run(t, nil, build[0], append(build[1:], "-Wl,--build-id", "-o", filepath.Join(full, "prog"), filepath.Join("testdata", "valgrind", "signal.c"))...)
			run(t, nil, "strip", "-o", filepath.Join(bare, "prog"), filepath.Join(full, "prog"))
			tw := twin{}
			ofFull, fullBiases := tw.valgrind(t, full)
			ofBare, bareBiases := tw.valgrind(t, bare)
			want := twinFrames(t, ofFull, fullBiases)
			aliases := make(map[string]string) // addresses of libc's functions, by name
			for object := range fullBiases {
				if strings.HasPrefix(path.Base(object), "libc.so") {
					for _, m := range exportedName.FindAllStringSubmatch(run(t, nil, "nm", "-D", object), -1) {
						aliases[m[2]] = m[1]
					}
				}
			}
			for _, report := range []struct {
				name   string
				xml    []byte
				biases map[string]address
			}{
				{"the twin's own report", ofFull, fullBiases},
				{"the report of the stripped program", ofBare, bareBiases},
				{"the same without names", namesInXML.ReplaceAll(ofBare, nil), bareBiases},
			} {
				records := parseRecords(t, run(t, report.xml, command, "--output=json"))
				tw.biases(t, records, report.biases)
				named, trampolines := 0, 0
				for s := range sites(records) {
					if !strings.HasPrefix(path.Base(s.Object), "libc.so") {
						continue
					}
					if s.Offset == 0 || len(s.Frames) == 0 {
						t.Errorf("%s: %#x has no name", report.name, uint64(s.IP))
						continue
					}
					outer := s.Frames[len(s.Frames)-1]
					if strings.HasPrefix(outer.Function, "__restore_rt") {
						trampolines++
						continue
					}
					expect := want[codePlace{path.Base(s.Object), s.IP - report.biases[s.Object]}]
					if len(expect) == 0 {
						continue // only in stripped programs does Valgrind show frames below main
					}
					named++
					fn := expect[len(expect)-1].Fn
					sameAddress := aliases[fn] != "" && aliases[fn] == aliases[outer.Function]
					if outer.Function != fn && !sameAddress {
						t.Errorf("%s: %#x is %s, want %s", report.name, uint64(s.IP), outer.Function, fn)
					}
				}
				if named < 2 || trampolines != 1 {
					t.Errorf("%s: %d frames of libc were compared, and %d trampolines; want 2 and 1", report.name, named, trampolines)
				}
			}
		})
	}
}
