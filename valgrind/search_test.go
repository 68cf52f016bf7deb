package valgrind

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// A lateMiss is a server that has no file, and takes a second to report that.
type lateMiss struct{ asked atomic.Int32 }

func (m *lateMiss) Find(context.Context, buildid.Query, func(buildid.Attempt)) (*buildid.File, error) {
	m.asked.Add(1)
	time.Sleep(time.Second)
	return nil, fs.ErrNotExist
}

// After ReadAhead, a server must be asked for the debug files of all objects at once, so that all
// misses together take a second.
func TestDebugFilesAreSearchedForAtOnce(t *testing.T) {
	input, err := os.ReadFile(filepath.Join(recorded, "names.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, writer := range map[string]func(Options) io.WriteCloser{
		"report": func(o Options) io.WriteCloser { return NewReport(io.Discard, o) },
		"markup": func(o Options) io.WriteCloser { return NewMarkup(markup.NewWriter(io.Discard), o) },
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := recordedOptions(t)
			synctest.Test(t, func(t *testing.T) {
				server := new(lateMiss)
				o.Symbolizer = symbolize.New(symbolize.Options{Servers: []symbolize.Finder{server}})
				defer o.Symbolizer.Close()
				o.Ahead = readAhead(t, input, o)
				start := time.Now()
				w := writer(o)
				if _, err := w.Write(input); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > 1500*time.Millisecond || server.asked.Load() < 2 {
					t.Errorf("%d searches delayed the report by %v, want a second", server.asked.Load(), took)
				}
			})
		})
	}
}
