//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/layout"
)

// sources are the files of a library. They contain everything that may be difficult: tabs, other
// alphabets, long lines, invalid UTF-8, control characters, and text that looks like markup or a
// frame.
var sources = map[string]string{
	"shop.h": "volatile int sink;\n" +
		"static inline __attribute__((always_inline)) int inner(int x)\n{\n" +
		"\tsink = x; /* \u00fcber\t\u202e */\n" +
		"\treturn x + sink; // {{{bt:0:0x1000:pc}}}\n}\n",
	"shop.cc": "#include \"shop.h\"\n" +
		"static inline __attribute__((always_inline)) int middle(int x) { return inner(x) * inner(x + 1); } // " + strings.Repeat("long ", 400) + "\n" +
		"__attribute__((noinline)) int price(int x) {\n  sink = 3; /* \x1b]8;;http://x\x1b\\ \xff */\n" +
		"  return middle(x) + middle(sink); // #0 0x10010 in f (/bin/true+0x1234) (BuildId: 0123456789abcdef)\n}\n" +
		"extern \"C\" int entry(int x) { return price(x) + 1; }\n",
}

const sourceID = "abcdef0123456789abcdef0123456789abcdef01" // debuginfod rejects shorter build IDs

// A sourceTwin is a library next to its sources.
type sourceTwin struct {
	dir, lib string
	log      []byte
	args     []string
}

// newSourceTwin builds the library of sources in a folder of its own, with a log that has every
// address of its code.
func newSourceTwin(t *testing.T, compiler string, flags ...string) *sourceTwin {
	t.Helper()
	need(t, compiler)
	dir := t.TempDir()
	for name, text := range sources {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	w := &sourceTwin{dir: dir, lib: filepath.Join(dir, "shop.so")}
	args := append(flags, "-O1", "-fPIC", "-shared", "-nostdlib", "-Wl,--build-id=0x"+sourceID, filepath.Join(dir, "shop.cc"), "-o", "shop.so")
	cmd := exec.Command(compiler, args...)
	cmd.Dir = dir
	if out, err := producers.combined(t, cmd); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	w.log = bytes.Replace(markupOf(t, w.lib), []byte(":abcdef}}}"), []byte(":"+sourceID+"}}}"), 1)
	w.args = []string{"--no-default-debug-directories", "--symbol-path", w.lib, "--source=0"}
	return w
}

// text returns symfilter's output for the log, and its messages.
func (w *sourceTwin) text(t *testing.T, env []string, args ...string) (out, messages string) {
	t.Helper()
	cmd := exec.Command(command, append(w.args, args...)...)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=", "HOME="+t.TempDir(), "XDG_CACHE_HOME=")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin = bytes.NewReader(w.log)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	b, err := producers.output(t, cmd)
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return string(b), stderr.String()
}

var frameWithLine = regexp.MustCompile(`^ *#\S+ +0x[0-9a-f]+ .* \S*/(shop\.\w+):(\d+)(?::(\d+))? \(shop\.so\+0x`)

// wantLines checks that each frame with a line is followed by this source line, unless the previous
// frame has the same line. Both files of sources must be shown. If the parameter some is false, no
// source line may be shown.
func wantLines(t *testing.T, out string, some bool) {
	t.Helper()
	shown := make(map[string]int)
	last := ""
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		m := frameWithLine.FindStringSubmatch(line)
		if m == nil {
			if strings.Contains(line, "(shop.so+0x") {
				last = ""
			}
			continue
		}
		name, number, column := m[1], 0, 0
		fmt.Sscan(m[2], &number)
		fmt.Sscan(m[3], &column)
		if number == 0 || !some {
			if strings.Contains(lines[i+1], " | ") {
				t.Fatalf("%s\nshows a line:\n%s", line, lines[i+1])
			}
			continue
		}
		if place := name + m[2]; place == last {
			continue
		} else {
			last = place
		}
		text := strings.Split(sources[name], "\n")[number-1]
		want, _ := layout.AppendSourceLine(nil, uint32(number), []byte(text), uint32(column))
		if strings.Contains(text, "BuildId") { // the text of a frame is escaped
			want = bytes.ReplaceAll(want, []byte("0x"), []byte(`0\x78`))
		}
		if lines[i+1] != string(want) {
			t.Fatalf("%s\ngot  %s\nwant %s", line, lines[i+1], want)
		}
		shown[name]++
	}
	if some && (shown["shop.h"] == 0 || shown["shop.cc"] == 0) || !some && len(shown) > 0 {
		t.Errorf("shown: %v in\n%s", shown, out)
	}
}

// If the debug information contains the sources, they must be shown, and no file may be read.
func TestEmbeddedSourcesAreShown(t *testing.T) {
	for name, flags := range map[string][]string{
		"plain":      {"-gdwarf-5", "-gembed-source"},
		"64 bits":    {"-gdwarf-5", "-gembed-source", "-gdwarf64"},
		"compressed": {"-gdwarf-5", "-gembed-source", "-gz"},
		"split":      {"-gdwarf-5", "-gembed-source", "-gsplit-dwarf"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSourceTwin(t, "clang-19", flags...)
			for name := range sources {
				if err := os.WriteFile(filepath.Join(w.dir, name), []byte("int changed;\n"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			out, messages := w.text(t, nil, "--source-root", w.dir)
			wantLines(t, out, true)
			if messages != "" {
				t.Errorf("messages: got\n%s", messages)
			}
			// an index contains no sources, but a later run that uses it must show them
			home := "HOME=" + t.TempDir()
			index := exec.Command(command, "index", w.lib)
			index.Env = append(os.Environ(), home, "XDG_CACHE_HOME=")
			if report, err := producers.combined(t, index); err != nil {
				t.Fatalf("%s: %v\n%s", index, err, report)
			}
			if got, _ := w.text(t, []string{home}, "--source-root", w.dir); got != out {
				t.Errorf("with an index (-without +with):\n%s", cmp.Diff(out, got))
			}
			// filtering the output again must change nothing
			again := exec.Command(command, append(w.args, "--source-root", w.dir)...)
			again.Stdin = strings.NewReader(out)
			if got, err := producers.output(t, again); err != nil || string(got) != out {
				t.Errorf("filtered twice: %v, got\n%s\nwant\n%s", err, got, out)
			}
		})
	}
}

// Source files below --source-root must be shown. With clang's DWARF 5, which has checksums of the
// sources, the files must be verified. Otherwise a message must report that they are not.
func TestFilesBelowARootAreShown(t *testing.T) {
	for name, tt := range map[string]struct {
		compiler, flag string
		verified       bool
	}{
		"clang":   {"clang-19", "-gdwarf-5", true},
		"DWARF 4": {"clang-19", "-gdwarf-4", false},
		"gcc":     {"gcc", "-gdwarf-5", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSourceTwin(t, tt.compiler, tt.flag)
			out, messages := w.text(t, nil, "--source-root", w.dir)
			wantLines(t, out, true)
			if got := strings.Count(messages, "shop.h: not verified: the debug information has no checksum of this source file\n"); got != map[bool]int{false: 1}[tt.verified] {
				t.Errorf("messages: got\n%s", messages)
			}
			out, messages = w.text(t, nil)
			wantLines(t, out, false)
			if messages != "" {
				t.Errorf("without a root: messages: got\n%s", messages)
			}
			for name, text := range sources {
				if err := os.WriteFile(filepath.Join(w.dir, name), []byte(strings.SplitAfter(text, "\n")[0]), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			out, messages = w.text(t, nil, "--source-root", w.dir)
			wantLines(t, out, false)
			why := "not the version that was compiled: its checksum differs"
			if !tt.verified {
				why = "the file has 1 lines and lacks line "
			}
			for name := range sources {
				if !strings.Contains(messages, name+": no lines are shown: "+why) {
					t.Errorf("changed files: messages: got\n%s", messages)
				}
			}
		})
	}
}

// Source files from Debian's debuginfod must be shown. Afterwards they must be in the cache, under
// the names that elfutils uses.
func TestServersSendSources(t *testing.T) {
	w := newSourceTwin(t, "clang-19", "-gdwarf-5")
	server := runDebuginfod(t, w.dir)
	cache := filepath.Join(t.TempDir(), "cache")
	env := []string{"DEBUGINFOD_CACHE_PATH=" + cache}
	out, messages := w.text(t, append(env, "DEBUGINFOD_URLS="+server.url))
	wantLines(t, out, true)
	if messages != "symfilter: asking "+server.url+" for debug files\n" {
		t.Errorf("messages: got\n%s", messages)
	}
	asked := server.requests(t)
	if asked < 2 || asked > 4 {
		t.Errorf("%d requests, want one for each file", asked)
	}
	link, _ := w.text(t, append(env, "DEBUGINFOD_URLS="+server.url), "--source-url=debuginfod", "--hyperlink=always")
	if want := "\x1b]8;;" + server.url + "/buildid/" + sourceID + "/source" + w.dir + "/shop.h\x1b\\"; !strings.Contains(link, want) {
		t.Errorf("no link %q in\n%s", want, link)
	}
	server.stop()
	again, _ := w.text(t, env)
	if again != out {
		t.Errorf("without the server: got\n%s", again)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, sourceID, "source-*-*shop.h")); len(left) != 1 {
		t.Errorf("in the cache: %q", left)
	}
}
