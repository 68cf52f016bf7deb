package collector

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
)

// largeDebugFile returns the largest debug file in a tree, with its build ID and addresses of its
// functions. The file has at least 100 MiB and a compressed .debug_info. path is "" if the tree has
// no such file.
func largeDebugFile(t *testing.T, tree string) (path, id string, addresses []uint64) {
	t.Helper()
	least := int64(100 << 20)
	filepath.WalkDir(filepath.Join(tree, ".build-id"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".debug") {
			return nil
		}
		info, err := os.Stat(name)
		if err != nil || info.Size() < least {
			return nil
		}
		f, err := elf.Open(name)
		if err != nil {
			return nil
		}
		defer f.Close()
		if s := f.Section(".debug_info"); s == nil || s.Flags&elf.SHF_COMPRESSED == 0 {
			return nil
		}
		symbols, err := f.Symbols()
		if err != nil {
			return nil
		}
		path, id, least, addresses = name, filepath.Base(filepath.Dir(name))+strings.TrimSuffix(filepath.Base(name), ".debug"), info.Size(), nil
		for i := 0; i < len(symbols) && len(addresses) < 400; i += 1 + len(symbols)/2000 {
			if s := symbols[i]; elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 16 {
				addresses = append(addresses, s.Value+8)
			}
		}
		return nil
	})
	return path, id, addresses
}

// A batch must wait no longer than the patience for a debug file that another lookup keeps busy. A
// large file may take a second to inflate, and its first lookups take long, too. Until then, frames
// have only module and offset; later batches must have names.
func TestABatchDoesNotWaitForABusyFile(t *testing.T) {
	lines := linesOf(t, "crash.log")
	c := testConfig()
	c.Patience = Patience{Local: 20 * time.Millisecond}
	p := startBare(t, c)
	p.do(batchOf("a", lines[:32]...))
	id, err := buildid.Parse([]byte("eecd138796b4297ca7ee7bb08854e1173fee4bff"))
	if err != nil {
		t.Fatal(err)
	}
	frames := []string{lines[33], "    #1 0x7ffff7fbd917  (/opt/libledger.so+0x1917) (BuildId: eecd138796b4297ca7ee7bb08854e1173fee4bff)"}
	named := func() (n int) {
		ld := batchOf("a", frames...)
		p.do(ld)
		return strings.Count(bodiesOf(ld), "ledger.cc:27:16")
	}
	symbols := access.Symbolizer(p.shared.symbols.Symbolizer).(interface {
		Examine(ctx, within context.Context, id buildid.ID, name string, do func(*object.File)) error
	})
	err = symbols.Examine(context.Background(), nil, id, "libledger.so", func(*object.File) {
		if n := named(); n != 0 {
			t.Errorf("%d frames are named while the file is busy", n)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for named() < len(frames) { // each call has the patience of one batch
		time.Sleep(time.Millisecond)
	}
}

// The first frames that need a debug file of at least 100 MiB with compressed sections arrive in
// mid-stream. No batch may take longer than the patience plus 20 ms. A batch of another process,
// whose debug files were used before, may take at most 20 ms. STALL_TREE names a tree with such a
// large debug file.
func TestALargeFileStallsNoBatch(t *testing.T) {
	tree := os.Getenv("STALL_TREE")
	if tree == "" {
		t.Skip("STALL_TREE is not set: a measurement, for a machine that does nothing else")
	}
	path, id, addresses := largeDebugFile(t, tree)
	if path == "" {
		t.Fatalf("%s has no debug file of 100 MiB with compressed sections", tree)
	}
	const slack = 20 * time.Millisecond
	for _, patience := range []Patience{{}, {Local: 500 * time.Millisecond}, {Local: 2 * time.Second}} {
		c := testConfig()
		c.Patience = patience
		c.Symbols.DebugFileDirectories = append(c.Symbols.DebugFileDirectories, tree)
		p := startBare(t, c)
		timed := func(process string, lines ...string) time.Duration {
			ld := batchOf(process, lines...)
			began := time.Now()
			p.processLogs(context.Background(), ld)
			return time.Since(began)
		}
		crash := linesOf(t, "crash.log")
		timed("other", crash...)
		time.Sleep(3 * time.Second)
		timed("other", crash...)
		var others sync.WaitGroup
		stop := make(chan struct{})
		var longest, slowest time.Duration
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					slowest = max(slowest, timed("other", crash[33:38]...))
				}
			}
		})
		timed("large", "{{{reset}}}", "{{{module:0:large:elf:"+id+"}}}", "{{{mmap:0x0:0x100000000:load:0:rx:0x0}}}")
		named, batches := 0, 0
		for began := time.Now(); time.Since(began) < 15*time.Second; batches++ {
			var lines []string
			for i := range 5 {
				lines = append(lines, fmt.Sprintf("{{{bt:%d:%#x:ra}}}", i, addresses[(batches*5+i)%len(addresses)]))
			}
			ld := batchOf("large", lines...)
			b := time.Now()
			p.processLogs(context.Background(), ld)
			longest = max(longest, time.Since(b))
			if !strings.Contains(bodiesOf(ld), " (large+0x") || strings.Contains(bodiesOf(ld), ".c") {
				named++
			}
			time.Sleep(20 * time.Millisecond)
		}
		close(stop)
		others.Wait()
		t.Logf("%s, patience %v: longest batch %s, of the other process %s; %d of %d batches have files", filepath.Base(path), patience, longest, slowest, named, batches)
		if longest > max(patience.Local, patience.Servers)+slack {
			t.Errorf("a batch took %s with a patience of %s", longest, patience.Local)
		}
		if slowest > slack {
			t.Errorf("a batch of another process took %s", slowest)
		}
		if named == 0 {
			t.Error("nothing was resolved")
		}
	}
}
