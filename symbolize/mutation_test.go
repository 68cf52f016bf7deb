package symbolize

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// Numbers of damaged files in TestDamagedFilesHarmNoOther.
const (
	damagedFiles     = 1000
	damagedFilesLong = 20_000
)

// Lookups in many damaged files must not panic, hang, or exceed twice the memory budget. An
// undamaged file, which the same Symbolizer reads after each damaged file, must answer as before.
func TestDamagedFilesHarmNoOther(t *testing.T) {
	n := damagedFiles
	if os.Getenv("TEST_LONG") == "1" {
		n = damagedFilesLong
	}
	good := build(t, "vars", variables)
	image, err := os.ReadFile(good.path)
	if err != nil {
		t.Fatal(err)
	}
	syms := good.symbols(t)
	function, variable := syms["_Z11in_functioni"].Value, syms["_ZN4shop5tableE"].Value+3*32+28
	const wantLine, wantMember = "in_function(int) /src/vars.cc:5:63\n", "shop::table[3].refs"

	path := filepath.Join(t.TempDir(), "damaged")
	var current buildid.ID
	finder := finderFunc(func(_ context.Context, q buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
		switch q.ID {
		case good.id:
			return buildid.Open(good.path, "good", q.ID)
		case current:
			return buildid.Open(path, "damaged", q.ID)
		}
		return nil, fs.ErrNotExist
	})
	const budget = 16 << 20
	s := open(t, Options{MaxMemory: budget}, finder)
	ctx := context.Background()
	answers := func(l fixture) (line, member string, errs error) {
		v, err := s.AskData(ctx, l.at(variable), Policy{})
		frames, err2 := s.Ask(ctx, nil, l.at(function), Policy{})
		return text(frames), v.Name + v.Member, errors.Join(err, err2)
	}
	wholeLine, wholeMember, err := answers(good)
	if wholeMember != wantMember || wholeLine != wantLine || err != nil {
		t.Fatalf("the good file: got %q, %q, %v", wholeLine, wholeMember, err)
	}

	r := rand.New(rand.NewPCG(7, 8))
	at := bytes.Index(image, good.id.Bytes())
	same, other := 0, 0
	for i := range n {
		b := bytes.Clone(image)
		id := good.id.Bytes()
		binary.BigEndian.PutUint64(id, uint64(i)+1)
		copy(b[at:], id)
		if current, err = buildid.FromBytes(id); err != nil {
			t.Fatal(err)
		}
		for range 1 + r.IntN(16) {
			p := 0x40 + r.IntN(len(b)-0x48)
			if at-32 < p && p < at+32 {
				continue
			}
			switch r.IntN(3) {
			case 0:
				b[p] = byte(r.Uint32())
			case 1:
				b[p] ^= 1 << r.IntN(8)
			case 2:
				binary.LittleEndian.PutUint32(b[p:], uint32(1)<<r.IntN(32)-uint32(r.IntN(2)))
			}
		}
		if err := os.WriteFile(path+".new", b, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil { // the previous file may still be mapped
			t.Fatal(err)
		}
		done := fuzztest.Watch(t, b)
		if line, member, _ := answers(fixture{id: current}); line == wantLine && member == wantMember {
			same++
		} else {
			other++
		}
		done()
		if line, member, err := answers(good); line != wantLine || member != wantMember || err != nil {
			t.Fatalf("the good file after damaged file %d: got %q, %q, %v", i, line, member, err)
		}
		if got := s.cache.held(); got > 2*budget {
			t.Fatalf("%d bytes are held after damaged file %d, of a budget of %d", got, i, budget)
		}
	}
	t.Logf("of %d damaged files %d answered as if they were whole", n, same)
	if same < n/10 || other < n/10 {
		t.Errorf("%d answered as if they were whole and %d did not: that says little", same, other)
	}
}
