package stacks

import (
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/gzip"
)

// Fields of pprof's messages, numbered as in proto/profile.proto.
const (
	FieldSampleType        = 1
	FieldSample            = 2
	FieldMapping           = 3
	FieldLocation          = 4
	FieldFunction          = 5
	FieldStringTable       = 6
	FieldDropFrames        = 7
	FieldKeepFrames        = 8
	FieldTimeNanos         = 9
	FieldDurationNanos     = 10
	FieldPeriodType        = 11
	FieldPeriod            = 12
	FieldComment           = 13
	FieldDefaultSampleType = 14
	FieldDocURL            = 15
)

// WritePprof writes p to w in pprof's format, protocol buffers compressed by gzip
// (proto/profile.proto of github.com/google/pprof). It returns the first error of w.
func (p *Profile) WritePprof(w io.Writer) error {
	z := gzip.NewWriter(w)
	e := &pprofWriter{w: z, strings: map[string]uint64{"": 0}, table: []string{""}}
	e.profile(p)
	if e.err != nil {
		return e.err
	}
	return z.Close()
}

// A pprofWriter encodes a profile. Strings are numbered at their first use, and their table is
// written last.
type pprofWriter struct {
	w       io.Writer
	strings map[string]uint64
	table   []string
	out     []byte // finished fields of the profile
	b       []byte // the fields of the current message
	err     error
}

func (e *pprofWriter) profile(p *Profile) {
	for _, v := range p.Values {
		e.valueType(v)
		e.message(FieldSampleType)
	}
	for i := range p.Samples {
		e.sample(&p.Samples[i])
	}
	for i := range p.Mappings {
		e.mapping(uint64(i+1), &p.Mappings[i])
	}
	for i := range p.Locations {
		e.location(uint64(i+1), &p.Locations[i])
	}
	for i := range p.Functions {
		f := &p.Functions[i]
		e.number(1, uint64(i+1))
		e.text(2, f.Name)
		e.text(3, f.LinkName)
		e.text(4, f.File)
		e.number(5, uint64(f.Line))
		e.message(FieldFunction)
	}
	e.text(FieldDropFrames, p.DropFrames)
	e.text(FieldKeepFrames, p.KeepFrames)
	e.number(FieldTimeNanos, uint64(p.Time))
	e.number(FieldDurationNanos, uint64(p.Duration))
	e.fields()
	if p.PeriodType != (ValueType{}) {
		e.valueType(p.PeriodType)
		e.message(FieldPeriodType)
	}
	e.number(FieldPeriod, uint64(p.Period))
	if len(p.Comments) > 0 {
		numbers := make([]uint64, len(p.Comments))
		for i, c := range p.Comments {
			numbers[i] = e.string(c)
		}
		packed(e, FieldComment, numbers)
	}
	shown := p.Default
	if shown == "" && len(p.Values) > 0 {
		shown = p.Values[0].Name // viewers would show the last value
	}
	e.text(FieldDefaultSampleType, shown)
	e.text(FieldDocURL, p.DocURL)
	e.fields()
	for _, s := range e.table {
		e.out = append(appendHead(e.out, FieldStringTable, len(s)), s...)
		e.send(sendSize)
	}
	e.send(0)
}

func (e *pprofWriter) valueType(v ValueType) {
	e.text(1, v.Name)
	e.text(2, v.Unit)
}

func (e *pprofWriter) sample(s *Sample) {
	packed(e, 1, s.Stack)
	packed(e, 2, s.Values)
	for _, l := range s.Labels {
		var b [8 * binary.MaxVarintLen64]byte
		label := appendNumber(b[:0], 1, e.string(l.Key))
		if l.Text != "" {
			label = appendNumber(label, 2, e.string(l.Text))
		} else {
			label = appendNumber(label, 3, uint64(l.Number))
			label = appendNumber(label, 4, e.string(l.Unit))
		}
		e.b = append(appendHead(e.b, 3, len(label)), label...)
	}
	e.message(FieldSample)
}

func (e *pprofWriter) mapping(id uint64, m *Mapping) {
	e.number(1, id)
	e.number(2, m.Start)
	e.number(3, m.Limit)
	e.number(4, m.Offset)
	e.text(5, m.File)
	e.text(6, m.BuildID)
	for i, has := range []bool{m.HasFunctions, m.HasFilenames, m.HasLineNumbers, m.HasInlineFrames} {
		e.number(7+i, uint64(flag(has)))
	}
	e.message(FieldMapping)
}

func (e *pprofWriter) location(id uint64, l *Location) {
	e.number(1, id)
	e.number(2, uint64(l.Mapping))
	e.number(3, l.Address)
	for _, line := range l.Lines {
		var b [4 * binary.MaxVarintLen64]byte
		field := appendNumber(b[:0], 1, uint64(line.Function))
		field = appendNumber(field, 2, uint64(line.Line))
		field = appendNumber(field, 3, uint64(line.Column))
		e.b = append(appendHead(e.b, 4, len(field)), field...)
	}
	e.number(5, uint64(flag(l.Folded)))
	e.message(FieldLocation)
}

// string returns the number of a string, added to the table if new.
func (e *pprofWriter) string(s string) uint64 {
	n, ok := e.strings[s]
	if !ok {
		n = uint64(len(e.table))
		e.strings[s] = n
		e.table = append(e.table, s)
	}
	return n
}

// text adds a field with the number of a string.
func (e *pprofWriter) text(field int, s string) { e.b = appendNumber(e.b, field, e.string(s)) }

func (e *pprofWriter) number(field int, n uint64) { e.b = appendNumber(e.b, field, n) }

// packed adds a field with several numbers.
func packed[N uint32 | uint64 | int64](e *pprofWriter, field int, numbers []N) {
	if len(numbers) == 0 {
		return
	}
	size := 0
	var b [binary.MaxVarintLen64]byte
	for _, n := range numbers {
		size += binary.PutUvarint(b[:], uint64(n))
	}
	e.b = appendHead(e.b, field, size)
	for _, n := range numbers {
		e.b = binary.AppendUvarint(e.b, uint64(n))
	}
}

// message ends the current message, as a field of the profile.
func (e *pprofWriter) message(field int) {
	e.out = append(appendHead(e.out, field, len(e.b)), e.b...)
	e.b = e.b[:0]
	e.send(sendSize)
}

// fields appends the encoded fields in e.b to the output, as fields of the profile itself.
func (e *pprofWriter) fields() {
	e.out = append(e.out, e.b...)
	e.b = e.b[:0]
}

// sendSize is the number of bytes collected before a write.
const sendSize = 64 << 10

// send writes the finished fields if they exceed the given number of bytes.
func (e *pprofWriter) send(most int) {
	if len(e.out) <= most {
		return
	}
	if e.err == nil {
		_, e.err = e.w.Write(e.out)
	}
	e.out = e.out[:0]
}

// appendHead appends the key and the length of a field of bytes.
func appendHead(b []byte, field, size int) []byte {
	const bytesField = 2
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3|bytesField), uint64(size))
}

// appendNumber appends a field with a number. It omits 0, the default.
func appendNumber(b []byte, field int, n uint64) []byte {
	if n == 0 {
		return b
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3), n)
}
