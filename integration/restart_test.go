//go:build linux

package integration

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/filter"
)

// A restart after any line of a log with real backtraces must not change the output. So the
// checkpoint must have the text that is held back or waits for maps, and the verdicts of earlier
// frames on the files. In a pipe, the maps of some forms arrive too late, and the frames have
// footnotes.
func TestRestartsWithinRealBacktracesChangeNothing(t *testing.T) {
	traces := newTraceTwin(t, "traces", twinBuild{link: []string{"-pie"}})
	hserr := newTraceTwin(t, "hserr", twinBuild{})
	forms := []string{"folly", "boost", "backward"}
	if long() {
		forms = slices.Concat(bareForms, fullForms, partForms)
	}
	for _, form := range forms {
		for _, args := range [][]string{nil, {"signal", "maps-before"}, {"maps-after"}} {
			log := traces.output(t, nil, append([]string{form}, args...)...)
			traces.wantRestarts(t, len(args) != 2, string(log), form)
		}
	}
	hserr.wantRestarts(t, false, string(hserr.output(t, nil)), "hserr")
	if long() {
		hserr.wantRestarts(t, true, string(hserr.output(t, nil)), "hserr")
	}
}

// wantRestarts fails the test if a restart after a line of the log changes the output. It uses
// synctest: a partial log is held back only for a time, which a busy machine would exceed.
func (w *traceTwin) wantRestarts(t *testing.T, whole bool, log, name string) {
	synctest.Test(t, func(t *testing.T) { w.compareRestarts(t, whole, log, name) })
}

func (w *traceTwin) compareRestarts(t *testing.T, whole bool, log, name string) {
	opened, err := symfilter.Symbols{CacheDir: t.TempDir(), DebugDirs: []string{w.debug}}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	o := filter.Options{Symbolizer: opened.Symbolizer, Cache: opened.Cache, Patience: filter.Patience{Local: time.Minute}, Dialects: filter.Dialects{Whole: whole}}
	var want bytes.Buffer
	f := filter.New(&want, o)
	io.WriteString(f, log)
	f.Close()
	var out bytes.Buffer
	f = filter.New(&out, o)
	at := 0
	for line := range strings.Lines(log) {
		io.WriteString(f, line)
		at += len(line)
		other := bytes.NewBuffer(bytes.Clone(out.Bytes()))
		g := filter.New(other, o)
		if err := g.Restore(f.AppendContext(nil)); err != nil {
			t.Fatal(err)
		}
		io.WriteString(g, log[at:])
		g.Close()
		if diff := cmp.Diff(want.String(), other.String()); diff != "" {
			t.Errorf("%s, after %q: uninterrupted (-), restarted (+):\n%s", name, line, diff)
		}
	}
	f.Close()
}
