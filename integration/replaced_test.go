//go:build linux

package integration

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
)

// unidentified builds testdata/twin/backtrace.cc and its library in dir, with debug information and
// without build IDs. It adds the given number of empty lines at the start of each source.
func unidentified(t *testing.T, dir string, lines int, flags ...string) (program string) {
	t.Helper()
	need(t, "g++")
	source := t.TempDir()
	for _, name := range []string{"backtrace.cc", "ledger.cc", "leaf.h", "inventory.h", "pool.h"} {
		text, err := os.ReadFile(filepath.Join(checkout, "integration", "testdata", "twin", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(source, name), append(bytes.Repeat([]byte("\n"), lines), text...), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	common := append([]string{"-g", "-Wl,--build-id=none", "-fno-omit-frame-pointer", "-ffile-prefix-map=" + source + "=/src"}, flags...)
	library := filepath.Join(dir, "libledger.so")
	program = filepath.Join(dir, "backtrace")
	run(t, nil, "g++", append(common[:len(common):len(common)], "-fPIC", "-shared", filepath.Join(source, "ledger.cc"), "-o", library)...)
	run(t, nil, "g++", append(common[:len(common):len(common)], filepath.Join(source, "backtrace.cc"), "-o", program, "-L", dir, "-lledger", `-Wl,-rpath,$ORIGIN`)...)
	return program
}

// A program without a build ID is rebuilt while its log is followed. Later frames must be resolved
// from the new file, and not from the old file.
func TestReplacedFilesWithoutBuildIDAreReadAgain(t *testing.T) {
	for name, flag := range map[string]string{"with the same code": "-O2", "with other code": "-O0"} {
		t.Run(name, func(t *testing.T) {
			replacedFile(t, flag, 300)
			replacedFile(t, flag, 10)
		})
	}
}

// replacedFile filters a trace, rebuilds the program with this flag, and filters a second trace
// after the given number of lines of text. The second trace must get the answers of the new
// program. After fewer than 256 lines of text, the first trace is still open.
func replacedFile(t *testing.T, flag string, lines int) {
	text := strings.Repeat("text\n", lines)
	dir := t.TempDir()
	w := &traceTwin{dir: dir, program: unidentified(t, dir, 0, "-O2")}
	first := string(w.output(t, nil))
	opened, err := symfilter.Symbols{CacheDir: t.TempDir()}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	o := filter.Options{Symbolizer: opened.Symbolizer, Cache: opened.Cache, Patience: filter.Patience{Local: time.Minute}, Dialects: filter.Dialects{Whole: true}}
	var out bytes.Buffer
	f := filter.New(&out, o)
	io.WriteString(f, first)
	access.Filter(f).(interface{ Release() error }).Release()
	if answers := strings.Count(out.String(), ".cc:"); answers < 5 {
		t.Fatalf("%d answers in\n%s", answers, out.String())
	}
	other := t.TempDir()
	unidentified(t, other, 5, flag)
	for _, file := range []string{"libledger.so", "backtrace"} {
		if err := os.Rename(filepath.Join(other, file), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	second := string(w.output(t, nil))
	out.Reset()
	io.WriteString(f, text+second)
	f.Close()
	again, err := symfilter.Symbols{CacheDir: t.TempDir()}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	o.Symbolizer, o.Cache = again.Symbolizer, again.Cache
	var want bytes.Buffer
	g := filter.New(&want, o)
	io.WriteString(g, second)
	g.Close()
	if diff := cmp.Diff(want.String(), strings.TrimPrefix(out.String(), text)); diff != "" {
		t.Errorf("by the new file (-), in the followed log (+):\n%s", diff)
	}
}

// If a trace has refuted a file, and the right file is then put at its path, the right file must
// answer: the verdict is about the file, not about its path.
func TestRefutedFilesAreTriedAgainWhenTheyAreReplaced(t *testing.T) {
	right := newTraceTwin(t, "backtrace", twinBuild{})
	other := newTraceTwin(t, "backtrace", twinBuild{flags: []string{"-O0"}})
	log := string(right.output(t, nil))
	opened, err := symfilter.Symbols{CacheDir: t.TempDir(), DebugDirs: []string{right.debug, other.debug}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	library := filepath.Join(right.dir, "libledger.so")
	kept, wrong := library+".kept", filepath.Join(other.dir, "libledger.so")
	for _, image := range []bool{false, true} {
		o := filter.Options{Symbolizer: opened.Symbolizer, Cache: opened.Cache, Patience: filter.Patience{Local: time.Minute}, Dialects: filter.Dialects{Whole: true}}
		if image {
			o.Dialects.Images = []filter.Image{{Name: "libledger.so", Path: library}}
		}
		var out bytes.Buffer
		f := filter.New(&out, o)
		var answers []int
		for _, at := range []string{"", wrong, kept} {
			if at == wrong {
				run(t, nil, "mv", library, kept)
				run(t, nil, "cp", wrong, library)
			} else if at == kept {
				run(t, nil, "mv", kept, library)
			}
			out.Reset()
			io.WriteString(f, log)
			access.Filter(f).(interface{ Release() error }).Release()
			answers = append(answers, strings.Count(out.String(), "ledger.cc:"))
		}
		f.Close()
		if diff := cmp.Diff([]int{3, 0, 3}, answers); diff != "" {
			t.Errorf("--image %v: answers of the right file, another one and the right one again (-want +got):\n%s", image, diff)
		}
	}
}
