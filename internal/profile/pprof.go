package profile

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/symfilter/symfilter/internal/stacks"
)

// isPprof reports whether head begins like a message of pprof's. The fields then have the types
// of profile.proto.
func isPprof(head []byte) bool {
	known := 0
	for len(head) > 0 {
		f, rest, err := nextField(head)
		if err != nil && !errors.Is(err, ErrCut) {
			return false
		}
		switch n := f.number; {
		case n == 0: // cut within the key
		case n <= stacks.FieldStringTable || n == stacks.FieldPeriodType:
			if f.kind != bytesType {
				return false
			}
			known++
		case n == stacks.FieldComment:
			known++
		case n <= stacks.FieldDocURL:
			if f.kind != numberType {
				return false
			}
			known++
		case known == 0:
			return false
		}
		if err != nil {
			break
		}
		head = rest
	}
	return known > 0
}

// A pprofProfile holds a profile in pprof's format, and implements document.
type pprofProfile struct {
	p stacks.Profile
	m *memory

	strings                        []string
	mappings, functions, locations map[uint64]uint32 // by ID: number in p
	timed                          bool
}

func (d *pprofProfile) resolve(r *resolver) error        { return r.profile(&d.p, joinedMaps) }
func (d *pprofProfile) stacks() (*stacks.Profile, error) { return &d.p, nil }

// readPprof reads a profile in four passes, since messages refer to each other and may be in
// any order. The passes read strings, messages that refer only to strings, locations, and
// samples.
func readPprof(data []byte, r *resolver) (document, error) {
	d := &pprofProfile{m: r.m, mappings: map[uint64]uint32{}, functions: map[uint64]uint32{}, locations: map[uint64]uint32{}}
	for _, pass := range []func(field) error{d.string, d.other, d.location, d.sample} {
		if err := eachField(data, pass); err != nil {
			return nil, err
		}
	}
	d.strings, d.mappings, d.functions, d.locations = nil, nil, nil, nil
	if len(d.p.Values) == 0 {
		return nil, errors.New("the profile has no value types")
	}
	if len(d.p.Values) > 0 && d.p.Default == "" {
		d.p.Default = d.p.Values[len(d.p.Values)-1].Name // as viewers do
	}
	return d, nil
}

func (d *pprofProfile) string(f field) error {
	if f.number != stacks.FieldStringTable {
		return nil
	}
	if f.kind != bytesType {
		return errWire
	}
	d.strings = append(d.strings, string(f.data))
	return d.m.take(len(f.data) + 40)
}

// text returns string n of the table.
func (d *pprofProfile) text(n uint64) (string, error) {
	if n == 0 {
		return "", nil
	}
	if n >= uint64(len(d.strings)) {
		return "", fmt.Errorf("string %d is not in the string table, which has %d", n, len(d.strings))
	}
	return d.strings[n], nil
}

// other reads the field f if it refers only to strings.
func (d *pprofProfile) other(f field) (err error) {
	p := &d.p
	switch f.number {
	case stacks.FieldSampleType, stacks.FieldPeriodType:
		var v stacks.ValueType
		if v, err = d.valueType(f); err != nil {
			return err
		}
		if f.number == stacks.FieldPeriodType {
			p.PeriodType = v
			return nil
		}
		p.Values = append(p.Values, v)
		return d.m.take(64)
	case stacks.FieldMapping:
		return d.mapping(f)
	case stacks.FieldFunction:
		return d.function(f)
	case stacks.FieldDropFrames:
		p.DropFrames, err = d.text(f.value)
	case stacks.FieldKeepFrames:
		p.KeepFrames, err = d.text(f.value)
	case stacks.FieldTimeNanos:
		if d.timed {
			return errors.New("several profiles in one file; give each in a file of its own")
		}
		d.timed, p.Time = f.value != 0, int64(f.value)
	case stacks.FieldDurationNanos:
		p.Duration = int64(f.value)
	case stacks.FieldPeriod:
		p.Period = int64(f.value)
	case stacks.FieldComment:
		return f.numbers(func(n uint64) error {
			text, err := d.text(n)
			p.Comments = append(p.Comments, text)
			if err == nil {
				err = d.m.take(40)
			}
			return err
		})
	case stacks.FieldDefaultSampleType:
		p.Default, err = d.text(f.value)
	case stacks.FieldDocURL:
		p.DocURL, err = d.text(f.value)
	}
	return err
}

// message calls the function use for each number in the message f, and ignores other fields.
func (f *field) message(use func(number int, n uint64) error) error {
	if f.kind != bytesType {
		return errWire
	}
	return eachField(f.data, func(f field) error {
		if f.kind != numberType {
			return nil // a field of another version of the format
		}
		return use(f.number, f.value)
	})
}

func (d *pprofProfile) valueType(f field) (v stacks.ValueType, err error) {
	err = f.message(func(number int, n uint64) (err error) {
		switch number {
		case 1:
			v.Name, err = d.text(n)
		case 2:
			v.Unit, err = d.text(n)
		}
		return err
	})
	return v, err
}

func (d *pprofProfile) mapping(f field) error {
	var m stacks.Mapping
	var id uint64
	err := f.message(func(number int, n uint64) (err error) {
		switch number {
		case 1:
			id = n
		case 2:
			m.Start = n
		case 3:
			m.Limit = n
		case 4:
			m.Offset = n
		case 5:
			m.File, err = d.text(n)
		case 6:
			m.BuildID, err = d.text(n)
		case 7:
			m.HasFunctions = n != 0
		case 8:
			m.HasFilenames = n != 0
		case 9:
			m.HasLineNumbers = n != 0
		case 10:
			m.HasInlineFrames = n != 0
		}
		return err
	})
	d.p.Mappings = append(d.p.Mappings, m)
	return cmp.Or(err, d.number(d.mappings, id, len(d.p.Mappings), "mapping"), d.m.take(256))
}

// number records the number n of the message with this ID. It fails for the ID 0, and for a
// repeated ID. The parameter what is the kind of message, for errors.
func (d *pprofProfile) number(of map[uint64]uint32, id uint64, n int, what string) error {
	if id == 0 {
		return fmt.Errorf("a %s has the ID 0", what)
	}
	if of[id] != 0 {
		return fmt.Errorf("two %ss have the ID %d", what, id)
	}
	of[id] = uint32(n)
	return nil
}

func (d *pprofProfile) function(f field) error {
	var fn stacks.Function
	var id uint64
	err := f.message(func(number int, n uint64) (err error) {
		switch number {
		case 1:
			id = n
		case 2:
			fn.Name, err = d.text(n)
		case 3:
			fn.LinkName, err = d.text(n)
		case 4:
			fn.File, err = d.text(n)
		case 5:
			fn.Line = int64(n)
		}
		return err
	})
	d.p.Functions = append(d.p.Functions, fn)
	return cmp.Or(err, d.number(d.functions, id, len(d.p.Functions), "function"), d.m.take(192))
}

func (d *pprofProfile) location(f field) error {
	if f.number != stacks.FieldLocation {
		return nil
	}
	if f.kind != bytesType {
		return errWire
	}
	var l stacks.Location
	var id uint64
	err := eachField(f.data, func(f field) error {
		switch f.number {
		case 1:
			id = f.value
		case 2:
			l.Mapping = d.mappings[f.value]
		case 3:
			l.Address = f.value
		case 4:
			var line stacks.Line
			err := f.message(func(number int, n uint64) error {
				switch number {
				case 1:
					line.Function = d.functions[n]
				case 2:
					line.Line = int64(n)
				case 3:
					line.Column = int64(n)
				}
				return nil
			})
			l.Lines = append(l.Lines, line)
			return cmp.Or(err, d.m.take(64))
		case 5:
			l.Folded = f.value != 0
		}
		return nil
	})
	d.p.Locations = append(d.p.Locations, l)
	return cmp.Or(err, d.number(d.locations, id, len(d.p.Locations), "location"), d.m.take(locationSize))
}

func (d *pprofProfile) sample(f field) error {
	if f.number != stacks.FieldSample {
		return nil
	}
	if f.kind != bytesType {
		return errWire
	}
	var s stacks.Sample
	err := eachField(f.data, func(f field) error {
		switch f.number {
		case 1:
			return f.numbers(func(id uint64) error {
				n := d.locations[id]
				if n == 0 {
					return fmt.Errorf("a sample refers to the location %d, which the profile does not have", id)
				}
				s.Stack = append(s.Stack, n)
				return d.m.take(frameSize)
			})
		case 2:
			return f.numbers(func(n uint64) error {
				s.Values = append(s.Values, int64(n))
				return d.m.take(valueSize)
			})
		case 3:
			return d.label(&s, f)
		}
		return nil
	})
	if err == nil && len(s.Values) != len(d.p.Values) {
		err = fmt.Errorf("a sample has %d values, not %d", len(s.Values), len(d.p.Values))
	}
	d.p.Samples = append(d.p.Samples, s)
	return cmp.Or(err, d.m.take(sampleSize))
}

// label reads a label of a sample. A label without a value is left out.
func (d *pprofProfile) label(s *stacks.Sample, f field) error {
	var l stacks.Label
	empty := true
	err := f.message(func(number int, n uint64) (err error) {
		switch number {
		case 1:
			l.Key, err = d.text(n)
			return err
		case 2:
			l.Text, err = d.text(n)
		case 3:
			l.Number = int64(n)
		case 4:
			l.Unit, err = d.text(n)
		}
		empty = empty && n == 0
		return err
	})
	if !empty {
		s.Labels = append(s.Labels, l)
	}
	return cmp.Or(err, d.m.take(labelSize))
}
