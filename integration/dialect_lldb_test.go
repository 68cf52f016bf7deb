//go:build linux

package integration

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// lldb returns the output of lldb with commands on a twin's program after its crash.
func (w *traceTwin) lldb(t *testing.T, settings []string, commands ...string) []byte {
	t.Helper()
	need(t, "lldb-19")
	all := []string{"--no-lldbinit", "--batch"}
	for _, s := range settings {
		all = append(all, "-O", "settings set "+s)
	}
	all = append(all, "-o", "run")
	for _, c := range commands {
		all = append(all, "-k", c)
	}
	cmd := exec.Command("lldb-19", append(all, w.program)...)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
	out, err := producers.combined(t, cmd)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return out
}

// Frames of lldb must be resolved. lldb prints modules without folders, but its list of images has
// paths, build IDs and bases.
func TestFramesOfLLDBAreResolved(t *testing.T) {
	t.Parallel()
	w := newTraceTwin(t, "fault", twinBuild{link: []string{"-pie"}})
	out := w.lldb(t, []string{"target.disable-aslr false"}, "bt", "image list")
	w.wantChain(t, w.frames(t, out)[1:], diedCalls...) // lldb prints the first frame twice
	w.wantOnce(t, out)

	bt, _, _ := strings.Cut(string(out), "(lldb) image list")
	files := []string{"--image", "fault=" + w.program, "--image", w.dir + "/libledger.so"}
	w.wantChain(t, w.frames(t, []byte(bt), files...)[1:], diedCalls...)
	w.wantNothing(t, []byte(bt))
}
