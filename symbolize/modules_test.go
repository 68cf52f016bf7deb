package symbolize

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// smallModules writes debug files that differ only in their build IDs. It returns the IDs and an
// address in the code of each.
func smallModules(t *testing.T, dir string, n int) (ids []buildid.ID, addr uint64) {
	t.Helper()
	data, err := os.ReadFile("../internal/object/testdata/whole.elf")
	if err != nil {
		t.Fatal(err)
	}
	id, err := buildid.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	addr = symbols[slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "run" })].Value
	raw := id.Bytes()
	at := bytes.Index(data, raw)
	for i := range n {
		binary.BigEndian.PutUint32(raw, uint32(i)*2654435761)
		copy(data[at:], raw)
		id, err := buildid.FromBytes(raw)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		hex := id.String()
		path := filepath.Join(dir, ".build-id", hex[:2], hex[2:]+".debug")
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return ids, addr
}

// A module with a single question must not make tables for thousands of questions. The bounds are a
// tenth above the measured bytes. The live bytes include 4,472 of the file's 6,872 bytes.
func TestModulesAskedForAFrameAreSmall(t *testing.T) {
	fuzztest.WithoutRace(t)
	const n = 500
	const allocated, live = 14300, 11200 // bytes of each module
	dir := t.TempDir()
	ids, addr := smallModules(t, dir, n)
	s := open(t, Options{IndexDir: t.TempDir()}, buildid.NewTree(dir))
	// Use one processor and no garbage collection. Otherwise the pools of buffers could become
	// empty, and new buffers would take up to 1,700 bytes for each module under load.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	measure := func(ids []buildid.ID) (total, live float64) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for _, id := range ids {
			frames, err := s.Ask(context.Background(), nil, Location{ID: id, Addr: addr}, Policy{})
			if err != nil || len(frames) == 0 || frames[0].Func != "run" {
				t.Fatalf("%v: %v, %v", id, frames, err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(ids)), float64(after.HeapAlloc-before.HeapAlloc) / float64(len(ids))
	}
	measure(ids[:100]) // fills pools and the listing of indexes
	gotTotal, gotLive := measure(ids[100:])
	t.Logf("%.0f bytes allocated, %.0f live", gotTotal, gotLive)
	if gotTotal > allocated || gotLive > live {
		t.Errorf("a module takes %.0f bytes, of which %.0f stay; want at most %d and %d", gotTotal, gotLive, allocated, live)
	}
}

// A small file is read into memory, so it must still answer after it was truncated.
func TestASmallFileThatShrinksStillAnswers(t *testing.T) {
	dir := t.TempDir()
	ids, addr := smallModules(t, dir, 1)
	s := open(t, Options{}, buildid.NewTree(dir))
	for range 2 {
		if got := code(s, Location{ID: ids[0], Addr: addr}); got == "" || got[:3] != "run" {
			t.Errorf("got %q, want run", got)
		}
		hex := ids[0].String()
		if err := os.Truncate(filepath.Join(dir, ".build-id", hex[:2], hex[2:]+".debug"), 100); err != nil {
			t.Fatal(err)
		}
	}
}
