package stacks

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// A Profile is a set of weighted stacks. Its mappings, functions and locations have numbers:
// number n is at index n-1, and 0 is none. The Add methods keep each of them once; a caller
// that appends to the slices itself must keep the numbers valid. The zero value is empty and
// ready for use. One goroutine at a time may use a Profile.
type Profile struct {
	Values  []ValueType
	Default string // name of the value that viewers show first; "" selects the first value

	Mappings  []Mapping
	Functions []Function
	Locations []Location
	Samples   []Sample

	Comments   []string
	DocURL     string
	DropFrames string // a regular expression of pprof: frames that viewers remove
	KeepFrames string // exceptions from DropFrames
	Time       int64  // time of the recording: nanoseconds since 1970; 0 if unknown
	Duration   int64  // nanoseconds; 0 if unknown
	PeriodType ValueType
	Period     int64 // units of PeriodType between two samples; 0 if unknown

	index index
}

// A ValueType is the name and the unit of a value of samples, such as alloc_space and bytes.
type ValueType struct{ Name, Unit string }

// A Mapping is an object file mapped into the program.
type Mapping struct {
	Start, Limit, Offset uint64 // addresses of the mapping, and the offset of Start in File
	File                 string
	BuildID              string // in hex; empty if unknown

	// Set if the mapping's locations need no further lookup of this kind. Viewers symbolize other
	// mappings again, if they find the file.
	HasFunctions, HasFilenames, HasLineNumbers, HasInlineFrames bool
}

// Symbolized returns m with all four flags set, so that viewers do not look up its names again.
func (m Mapping) Symbolized() Mapping {
	m.HasFunctions, m.HasFilenames, m.HasLineNumbers, m.HasInlineFrames = true, true, true, true
	return m
}

// A Function is a function of the source code.
type Function struct {
	Name     string // for people
	LinkName string // the linker's name; empty if unknown. pprof shortens a Name that is equal to it
	File     string
	Line     int64 // first line of the function; 0 if unknown
}

// A Location is a place in the program: an address, with the functions there.
type Location struct {
	Mapping uint32 // 0 if unknown
	Address uint64 // address in the running program, within the mapping; 0 if unknown
	Lines   []Line // innermost first: the last one is not inlined
	Folded  bool   // the linker folded several identical functions here
}

// A Line is a line of a function.
type Line struct {
	Function     uint32
	Line, Column int64 // 0 if unknown
}

// A Sample is a stack with a value for each of Profile.Values.
type Sample struct {
	Stack  []uint32 // locations, the leaf first
	Values []int64
	Labels []Label // sorted by key if AddSample added the sample
}

// A Label adds a text, or a number with a unit, to a sample, under a key. pprof reserves keys that
// begin with pprof::.
type Label struct {
	Key, Text string
	Number    int64
	Unit      string
}

// An index finds mappings, functions, locations and samples that a profile already has.
type index struct {
	mappings  map[Mapping]uint32
	functions map[Function]uint32
	locations map[string]uint32
	samples   map[uint64]uint32 // by hash: 1 + the index of the last sample with that hash
	// by sample: 1 + index of the previous sample with the same hash; 0 if none
	earlier []uint32
	seed    maphash.Seed
	key     []byte

	stacks []uint32 // arrays for the stacks and values of new samples
	values []int64
}

// AddMapping returns the number of a mapping, added if new.
func (p *Profile) AddMapping(m Mapping) uint32 {
	if p.index.mappings == nil {
		p.index.mappings = make(map[Mapping]uint32)
	}
	n, ok := p.index.mappings[m]
	if !ok {
		p.Mappings = append(p.Mappings, m)
		n = uint32(len(p.Mappings))
		p.index.mappings[m] = n
	}
	return n
}

// AddFunction returns the number of a function, added if new.
func (p *Profile) AddFunction(f Function) uint32 {
	if p.index.functions == nil {
		p.index.functions = make(map[Function]uint32)
	}
	n, ok := p.index.functions[f]
	if !ok {
		p.Functions = append(p.Functions, f)
		n = uint32(len(p.Functions))
		p.index.functions[f] = n
	}
	return n
}

// Wholes returns, for each of p.Functions, the whole function to which it belongs. If some lines of
// a function are from another source file, p has a second Function for these lines. It has the same
// names, but the other file and no first line.
func (p *Profile) Wholes() []*Function {
	type names struct{ name, link string }
	begun := make(map[names]*Function)
	for i := range p.Functions {
		if f := &p.Functions[i]; f.Line > 0 && begun[names{f.Name, f.LinkName}] == nil {
			begun[names{f.Name, f.LinkName}] = f
		}
	}
	wholes := make([]*Function, len(p.Functions))
	for i := range p.Functions {
		f := &p.Functions[i]
		if whole := begun[names{f.Name, f.LinkName}]; whole != nil && f.Line <= 0 {
			f = whole
		}
		wholes[i] = f
	}
	return wholes
}

// AddLocation returns the number of a location, added with a copy of its lines if new.
func (p *Profile) AddLocation(l Location) uint32 {
	b := binary.AppendUvarint(p.index.key[:0], uint64(l.Mapping))
	b = binary.AppendUvarint(b, l.Address)
	b = append(b, flag(l.Folded))
	for _, line := range l.Lines {
		b = binary.AppendUvarint(b, uint64(line.Function))
		b = binary.AppendVarint(b, line.Line)
		b = binary.AppendVarint(b, line.Column)
	}
	p.index.key = b
	n, ok := p.index.locations[string(b)]
	if !ok {
		if p.index.locations == nil {
			p.index.locations = make(map[string]uint32)
		}
		l.Lines = slices.Clone(l.Lines)
		p.Locations = append(p.Locations, l)
		n = uint32(len(p.Locations))
		p.index.locations[string(b)] = n
	}
	return n
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// AddSample adds a sample, with as many values as the profile has. The values of samples with
// equal stacks and labels are added up, limited to int64. The slices of a new sample are
// copied.
func (p *Profile) AddSample(s Sample) {
	labels := s.Labels
	if !slices.IsSortedFunc(labels, compareLabels) {
		labels = slices.SortedStableFunc(slices.Values(labels), compareLabels)
	}
	AddTo(p.sampleOf(s.Stack, labels).Values, s.Values)
}

// addStack adds a sample that has one value.
func (p *Profile) addStack(stack []uint32, value int, n int64) {
	v := &p.sampleOf(stack, nil).Values[value]
	*v = Plus(*v, n)
}

// sampleOf returns the sample with a stack and labels, added if new.
func (p *Profile) sampleOf(stack []uint32, labels []Label) *Sample {
	x := &p.index
	if x.samples == nil {
		x.samples, x.seed = make(map[uint64]uint32), maphash.MakeSeed()
	}
	for i := len(x.earlier); i < len(p.Samples); i++ { // samples that a caller appended
		x.note(x.hash(p.Samples[i].Stack, p.Samples[i].Labels))
	}
	h := x.hash(stack, labels)
	for i := x.samples[h]; i != 0; i = x.earlier[i-1] {
		if s := &p.Samples[i-1]; slices.Equal(s.Stack, stack) && slices.Equal(s.Labels, labels) {
			return s
		}
	}
	x.note(h)
	p.Samples = append(p.Samples, Sample{
		Stack:  carve(&x.stacks, stack, len(stack)),
		Values: carve(&x.values, nil, len(p.Values)),
		Labels: slices.Clone(labels),
	})
	return &p.Samples[len(p.Samples)-1]
}

// note indexes the next sample, which has this hash.
func (x *index) note(h uint64) {
	x.earlier = append(x.earlier, x.samples[h])
	x.samples[h] = uint32(len(x.earlier))
}

func (x *index) hash(stack []uint32, labels []Label) uint64 {
	b := x.key[:0]
	for _, n := range stack {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	for _, l := range labels {
		for _, text := range []string{l.Key, l.Text, l.Unit} {
			b = append(append(b, text...), 0)
		}
		b = binary.AppendVarint(b, l.Number)
	}
	x.key = b
	return maphash.Bytes(x.seed, b)
}

// carve returns a slice of n elements that begins with the given elements. It takes small
// slices from room to save allocations, and replaces room once it is used up.
func carve[E uint32 | int64](room *[]E, elements []E, n int) []E {
	const many = 1 << 12
	if len(*room) < n {
		if n >= many/4 {
			return append(make([]E, 0, n), elements...)[:n]
		}
		*room = make([]E, many)
	}
	s := (*room)[:n:n]
	*room = (*room)[n:]
	copy(s, elements)
	return s
}

func compareLabels(a, b Label) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Unit, b.Unit))
}

// Totals returns the sum of each value over all samples.
func (p *Profile) Totals() []int64 {
	total := make([]int64, len(p.Values))
	for i := range p.Samples {
		AddTo(total, p.Samples[i].Values)
	}
	return total
}
