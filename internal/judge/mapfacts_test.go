package judge

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/dialect"
)

// mapLines returns the lines of /proc/PID/maps for the code of m with the load bias, each after a
// prefix.
func mapLines(m *Image, prefix, path string, bias uint64) (lines []string) {
	for _, s := range m.Segments {
		if s.Flags&1 != 0 && s.MemSize > 0 {
			from := s.Addr &^ (pageSize - 1)
			end := (s.Addr + s.MemSize + pageSize - 1) &^ (pageSize - 1)
			lines = append(lines, fmt.Sprintf("%s%x-%x r-xp %08x fe:01 1835021    %s", prefix, from+bias, end+bias, s.Offset&^(pageSize-1), path))
		}
	}
	return lines
}

// The maps of one process must locate the frames of another process only if the frames agree with
// the file: an address without a function name must follow a call. If the maps are from an earlier
// trace, at least guessedCalls frames must agree, and no frame may contradict the file. Maps with a
// PID must never locate frames with another PID.
func TestMapsOfAnotherProcessLocateNothing(t *testing.T) {
	m, returns := thisProgram(t)
	const bias = 0x7f3210000000
	right, wrong := make([]uint64, 8), make([]uint64, 8)
	for i := range right {
		right[i] = returns[i*100] + bias
		wrong[i] = returns[i*100] + bias + 0x3000
	}
	one := append([]uint64{right[0]}, wrong[1:]...) // one address follows a call by coincidence
	for _, test := range []struct {
		name         string
		prefix, path string // in the lines of the maps
		pid          uint64 // in the frames
		old          bool   // the maps are from an earlier trace
		addrs        []uint64
		module       string // in the frames
		want         int    // located frames
	}{
		{"maps around the trace", "", m.Path, 0, false, right, "", 8},
		{"fewer frames", "", m.Path, 0, false, right[:3], "", 3},
		{"too few frames", "", m.Path, 0, false, right[:2], "", 0},
		{"maps of an earlier trace", "", m.Path, 0, true, right, "", 8},
		{"too few frames for them", "", m.Path, 0, true, right[:3], "", 0},
		{"another process without a PID", "", m.Path, 0, true, one[:3], "", 0},
		{"another process at nearly the same place", "", m.Path, 0, true, one, "", 0},
		{"the same PID", "host app[4711]: ", m.Path, 4711, false, right, "", 8},
		{"another PID", "host app[4711]: ", m.Path, 4712, false, right, "", 0},
		{"maps of another file for a module that the frames name", "", "/opt/other", 0, false, right[:1], m.Path, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := dialect.NewReader(nil)
			number := int64(0)
			r.Line([]byte("/opt/shop/before() [0x7f0000001234]"), number) // opens a map window
			for _, line := range mapLines(m, test.prefix, test.path, bias) {
				number++
				if l := r.Line([]byte(line), number); l == nil || !l.Map {
					t.Fatalf("%s is not a map", line)
				}
			}
			if test.old {
				r.AgeMaps(number)
			}
			var frames []*Frame
			for i, addr := range test.addrs {
				frames = append(frames, frame(dialect.Frame{Dialect: glibc, Number: i + 1, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Runtime, Addr: addr, Value: addr, Module: test.module}, Proof: dialect.Proof{PID: test.pid}}))
			}
			trace := Trace{Open: func(f *dialect.Frame) *Image {
				if f.Module == m.Path {
					copied := *m
					return &copied
				}
				return &Image{Err: ErrNoModule}
			}}
			trace.Judge(frames, r.Facts())
			got := 0
			for _, f := range frames {
				if f.Place.Err == nil {
					got++
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("located frames (-want +got):\n%s", diff)
			}
		})
	}
}

// If the log has only a library's name, frames must be located only if enough of them follow a
// call, and no address contradicts the file. This machine may have another library of that name.
func TestLibrariesFoundByTheirNameNeedMoreProof(t *testing.T) {
	m, returns := thisProgram(t)
	for _, test := range []struct {
		name   string
		byName bool
		offs   []uint64 // offsets from the beginning of the file
		want   int
	}{
		{"a path, two calls", false, returns[:2], 0},
		{"a path, three calls", false, returns[:3], 3},
		{"a name, one call", true, returns[:1], 0},
		{"a name, three calls", true, returns[:3], 3},
		{"a name, four calls and none", true, []uint64{returns[0], returns[1], returns[2], returns[3], returns[1] + 1}, 0},
	} {
		var frames []*Frame
		for i, off := range test.offs {
			frames = append(frames, frame(dialect.Frame{Dialect: coredump, Number: i + 1, LoggedPlace: dialect.LoggedPlace{Kind: dialect.BaseOffset, Value: off - m.lowest(), Module: "libledger.so"}}))
		}
		trace := Trace{Open: func(*dialect.Frame) *Image {
			copied := *m
			copied.ByName = test.byName
			return &copied
		}}
		trace.Judge(frames, new(dialect.Facts))
		got := 0
		for _, f := range frames {
			if f.Place.Err == nil {
				got++
			}
		}
		if got != test.want {
			t.Errorf("%s: %d frames are located, want %d", test.name, got, test.want)
		}
	}
}
