package dwarf

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
)

// A found is the result of a lookup: the frames, the texts of their names, and the error.
type found struct {
	Frames []Frame
	Names  []string
	Err    string
}

func find(d *Data, addr uint64) (f found) {
	frames, err := d.Lookup(nil, addr)
	for i := range frames {
		if frames[i].Ref != 0 {
			frames[i].Name, frames[i].Ref = d.Name(frames[i].Ref), 0
		}
		f.Names = append(f.Names, string(frames[i].Name))
		frames[i].Name = nil
	}
	if f.Frames = frames; err != nil {
		f.Err = err.Error()
	}
	return f
}

// sharedBy looks up all addresses with d, while n other readers look them up in other orders. It
// checks that the other readers return the same as d, or ErrNotAlone.
func sharedBy(t *testing.T, d *Data, addrs []uint64, n int, shrink bool) []found {
	t.Helper()
	d.LazyNames()
	d.Share()
	var all sync.WaitGroup
	var stop atomic.Bool
	others := make([]map[uint64]found, n)
	for i := range others {
		r := d.Reader()
		others[i] = make(map[uint64]found)
		all.Go(func() {
			order := rand.New(rand.NewPCG(uint64(i), 3)).Perm(len(addrs))
			for _, at := range order {
				if f := find(r, addrs[at]); f.Err == "" {
					others[i][addrs[at]] = f
				} else if f.Err != ErrNotAlone.Error() || len(f.Frames) > 0 {
					t.Errorf("a reader beside others has %+v", f)
				}
				if stop.Load() {
					return
				}
			}
		})
	}
	var mine []found
	for i, addr := range addrs {
		mine = append(mine, find(d, addr))
		if shrink && i%7 == 0 {
			d.Shrink(d.Footprint() / 2)
		}
	}
	if t.Failed() {
		stop.Store(true)
	}
	all.Wait()
	for i, addr := range addrs {
		for _, o := range others {
			want := mine[i]
			want.Err = "" // damage that was found in the unit earlier
			if f, ok := o[addr]; ok && !cmp.Equal(want, f) {
				t.Errorf("%#x (-first +beside):\n%s", addr, cmp.Diff(want, f))
			}
		}
	}
	d.Shrink(0)
	if held := d.Footprint(); held != 0 {
		t.Errorf("%d bytes are held after Shrink(0)", held)
	}
	return mine
}

// Five readers of one file must find the same as a single reader, even while units are dropped.
func TestReadersFindTheSame(t *testing.T) {
	for _, v := range victims(t) {
		t.Run(v.name, func(t *testing.T) {
			o, err := object.Open(bytes.NewReader(v.image), int64(len(v.image)), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			open := func() *Data {
				d, err := New(o, Links{})
				if err != nil {
					t.Skip(err)
				}
				return d
			}
			alone := open()
			alone.LazyNames()
			var want []found
			for _, addr := range v.code {
				want = append(want, find(alone, addr))
			}
			for _, shrink := range []bool{false, true} {
				got := sharedBy(t, open(), v.code, 4, shrink)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("shrinking: %v (-one reader +five):\n%s", shrink, diff)
				}
			}
		})
	}
}

// Only the first reader of a damaged file may return an error. The error must be the same as
// without other readers.
func TestReadersLeaveDamageToTheFirst(t *testing.T) {
	all := slices.DeleteFunc(victims(t), func(v victim) bool { return len(v.code) > 2000 })
	r := rand.New(rand.NewPCG(9, 10))
	var image []byte
	faults, frames := 0, 0
	for range fuzztest.LongOr(20_000, 300) {
		v := &all[r.IntN(len(all))]
		image = v.damage(r, image)
		o, err := object.Open(bytes.NewReader(image), int64(len(image)), nil)
		if err != nil {
			continue
		}
		alone, err := New(o, Links{})
		if err != nil {
			o.Close()
			continue
		}
		alone.LazyNames()
		alone.load() // as Reader does: then a section's fault is found in the first lookup
		addrs := make([]uint64, 40)
		for i := range addrs {
			addrs[i] = v.code[r.IntN(len(v.code))]
		}
		var want []found
		for _, addr := range addrs {
			f := find(alone, addr)
			want = append(want, f)
			if frames += len(f.Frames); f.Err != "" {
				faults++
			}
		}
		shared, _ := New(o, Links{})
		got := sharedBy(t, shared, addrs, 3, false)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-one reader +four):\n%s", v.name, diff)
		}
		o.Close()
		if t.Failed() {
			return
		}
	}
	if faults < 100 || frames < 1000 {
		t.Errorf("%d lookups met damage, %d frames were found: that says little", faults, frames)
	}
}
