package profile

import (
	"math"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/stacks"
)

// Approximate memory of each part of a profile, in bytes, including the unused capacity of slices
// and maps.
const (
	sampleSize   = 192
	locationSize = 192
	frameSize    = 8 // 4 bytes of a frame in a stack, and slack for growth
	valueSize    = 16
	labelSize    = 96
)

// rawStacks collects stacks with addresses of a process, for the formats of gperftools and
// jemalloc.
type rawStacks struct {
	p         stacks.Profile
	maps      mapList
	m         *memory
	locations map[uint64]uint32 // numbers of locations, by address
	stack     []uint32          // scratch
}

func newRawStacks(m *memory) *rawStacks {
	return &rawStacks{m: m, locations: make(map[uint64]uint32)}
}

// add adds a sample. addrs are addresses within instructions, the leaf first.
func (r *rawStacks) add(addrs []uint64, values []int64, labels ...stacks.Label) error {
	if err := r.m.take(sampleSize + len(addrs)*frameSize + len(values)*valueSize + len(labels)*labelSize); err != nil {
		return err
	}
	r.stack = r.stack[:0]
	for _, addr := range addrs {
		n, ok := r.locations[addr]
		if !ok {
			if err := r.m.take(locationSize); err != nil {
				return err
			}
			r.p.Locations = append(r.p.Locations, stacks.Location{Address: addr})
			n = uint32(len(r.p.Locations))
			r.locations[addr] = n
		}
		r.stack = append(r.stack, n)
	}
	r.p.Samples = append(r.p.Samples, stacks.Sample{Stack: slices.Clone(r.stack), Values: slices.Clone(values), Labels: labels})
	return nil
}

// finish reads the list of mappings, and finds the mapping of each location.
func (r *rawStacks) finish(list []byte) error {
	if err := r.maps.read(list, r.m); err != nil {
		return err
	}
	for i := range r.p.Locations {
		l := &r.p.Locations[i]
		l.Mapping = r.maps.find(l.Address)
	}
	r.p.Mappings = r.maps.all
	r.locations = nil
	return nil
}

func (r *rawStacks) resolve(to *resolver) error       { return to.profile(&r.p, exactMaps) }
func (r *rawStacks) stacks() (*stacks.Profile, error) { return &r.p, nil }

// unsample estimates the number and size of all allocations from the sampled ones. A Poisson
// process samples an allocation of n bytes with the probability 1-exp(-n/rate). Here n is the
// mean size. The rate is in bytes; 0 and 1 mean that all were sampled.
func unsample(number, size, rate int64) (int64, int64) {
	if number == 0 || size == 0 || rate <= 1 {
		return number, size
	}
	scale := 1 / (1 - math.Exp(-float64(size)/float64(number)/float64(rate)))
	return scaled(number, scale), scaled(size, scale)
}

// scaled returns n times scale, limited to int64. scale is 1 or more.
func scaled(n int64, scale float64) int64 {
	switch v := float64(n) * scale; {
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	case math.IsNaN(v):
		return n
	default:
		return int64(v)
	}
}

// listed returns words as a part of a sentence.
func listed(words []string) string {
	switch n := len(words) - 1; n {
	case -1:
		return "none"
	case 0:
		return words[0]
	default:
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
}
