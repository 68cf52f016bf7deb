package stacks

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
)

// speedscopeSchema identifies speedscope's file format.
const speedscopeSchema = "https://www.speedscope.app/file-format-schema.json"

// A speedscopeFrame is a frame of speedscope's format.
type speedscopeFrame struct {
	name, file string
	line       int64 // 0 if unknown
}

// WriteSpeedscope writes p to w in speedscope's JSON, with a profile for each value. The viewer
// opens the profile of the default value. Each frame is a function, with its file and first
// line. speedscope shows name after the value's name. The values of stacks with the same frames
// are added up. A stack with a sum below 0 is left out, since speedscope rejects it.
// WriteSpeedscope returns the first error of w.
func (p *Profile) WriteSpeedscope(w io.Writer, name string) error {
	s := &speedscopeWriter{p: p, out: bufio.NewWriterSize(w, sendSize)}
	s.out.WriteString(`{"$schema":`)
	s.text(speedscopeSchema)
	s.out.WriteString(`,"exporter":"symfilter","name":`)
	s.text(name)
	if at := slices.IndexFunc(p.Values, func(v ValueType) bool { return v.Name == p.Default }); at > 0 {
		s.out.WriteString(`,"activeProfileIndex":` + strconv.Itoa(at))
	}
	frames := s.frames()
	s.out.WriteString(`},"profiles":[`)
	for value := range p.Values {
		if value > 0 {
			s.out.WriteString(",")
		}
		s.profile(value, name, frames)
	}
	s.out.WriteString("]}\n")
	return s.out.Flush()
}

// A speedscopeWriter writes JSON to out, which keeps the first error.
type speedscopeWriter struct {
	p     *Profile
	out   *bufio.Writer
	rank  []uint32 // by frame
	empty uint32   // the frame of an empty stack
	b     []byte
}

func (s *speedscopeWriter) text(text string) {
	s.b, _ = escape.AppendString(s.b[:0], text)
	s.out.Write(s.b)
}

// frames writes the frames. It returns the numbers of the frames at each location, outermost
// first.
func (s *speedscopeWriter) frames() [][]uint32 {
	var all []speedscopeFrame
	index := make(map[speedscopeFrame]uint32)
	add := func(f speedscopeFrame) uint32 {
		n, ok := index[f]
		if !ok {
			n = uint32(len(all))
			all = append(all, f)
			index[f] = n
		}
		return n
	}
	wholes := s.p.Wholes()
	frames := make([][]uint32, len(s.p.Locations))
	for i := range s.p.Locations {
		l := &s.p.Locations[i]
		for j, name := range slices.Backward(s.p.frameNames(l)) {
			f := speedscopeFrame{name: name}
			if j < len(l.Lines) && l.Lines[j].Function != 0 {
				at := wholes[l.Lines[j].Function-1]
				f.file, f.line = at.File, max(0, at.Line)
			}
			frames[i] = append(frames[i], add(f))
		}
	}
	if slices.ContainsFunc(s.p.Samples, func(s Sample) bool { return len(s.Stack) == 0 }) {
		s.empty = add(speedscopeFrame{name: emptyStack})
	}
	s.rank = ranks(len(all), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(all[a].name, all[b].name), cmp.Compare(all[a].file, all[b].file), cmp.Compare(all[a].line, all[b].line))
	})
	s.out.WriteString(`,"shared":{"frames":[`)
	for i := range all {
		if i > 0 {
			s.out.WriteString(",")
		}
		s.frame(&all[i])
	}
	s.out.WriteString("]")
	return frames
}

func (s *speedscopeWriter) frame(f *speedscopeFrame) {
	s.out.WriteString(`{"name":`)
	s.text(f.name)
	if f.file != "" {
		s.out.WriteString(`,"file":`)
		s.text(f.file)
	}
	if f.line != 0 {
		s.out.WriteString(`,"line":` + strconv.FormatInt(f.line, 10))
	}
	s.out.WriteString("}")
}

// profile writes all stacks as one speedscope profile, weighted by the value with this index. The
// profile's name includes name, since speedscope does not show the file's name.
func (s *speedscopeWriter) profile(value int, name string, frames [][]uint32) {
	t := newTree([]*Profile{s.p}, value, func(*Profile) [][]uint32 { return frames }, s.empty)
	v := s.p.Values[value]
	s.out.WriteString(`{"type":"sampled","name":`)
	s.text(v.Name + ", " + name)
	s.out.WriteString(`,"unit":`)
	s.text(speedscopeUnit(v.Unit))
	s.out.WriteString(`,"startValue":0,"samples":[`)
	var weights []int64
	end := int64(0)
	t.walk(s.rank, func(stack []uint32, values pair) {
		n := values[0]
		if n < 0 {
			return
		}
		s.b = s.b[:0]
		if len(weights) > 0 {
			s.b = append(s.b, ',')
		}
		before := byte('[')
		for _, f := range stack {
			s.b = strconv.AppendUint(append(s.b, before), uint64(f), 10)
			before = ','
		}
		s.out.Write(append(s.b, ']'))
		weights = append(weights, n)
		end = Plus(end, n)
	})
	s.out.WriteString(`],"weights":[`)
	for i, n := range weights {
		s.b = s.b[:0]
		if i > 0 {
			s.b = append(s.b, ',')
		}
		s.out.Write(strconv.AppendInt(s.b, n, 10))
	}
	s.out.WriteString(`],"endValue":` + strconv.FormatInt(end, 10) + "}")
}

// speedscopeUnit returns the unit of speedscope's format for a unit of pprof's.
func speedscopeUnit(unit string) string {
	switch unit {
	case "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes":
		return unit
	}
	return "none"
}
