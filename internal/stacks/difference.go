package stacks

import "slices"

// baseLabel marks the subtracted samples of a difference. pprof recognizes the label, and shows
// percentages of the sum of these samples.
var baseLabel = Label{Key: "pprof::base", Text: "true"}

// Difference returns the stacks of after, and the stacks of before with negated values and the
// label pprof::base. Both profiles must have the same values. The result has the comments of after.
func Difference(before, after *Profile) *Profile {
	d := &Profile{Values: after.Values, Default: after.Default, Comments: after.Comments, DocURL: after.DocURL}
	d.addAll(after, 1)
	d.addAll(before, -1, baseLabel)
	return d
}

// addAll adds the samples of q, with values multiplied by sign, and with further labels.
func (p *Profile) addAll(q *Profile, sign int64, labels ...Label) {
	mappings := make([]uint32, len(q.Mappings)+1)
	for i, m := range q.Mappings {
		mappings[i+1] = p.AddMapping(m)
	}
	functions := make([]uint32, len(q.Functions)+1)
	for i, f := range q.Functions {
		functions[i+1] = p.AddFunction(f)
	}
	locations := make([]uint32, len(q.Locations)+1)
	var lines []Line
	for i, l := range q.Locations {
		l.Mapping = mappings[l.Mapping]
		lines = append(lines[:0], l.Lines...)
		for j := range lines {
			lines[j].Function = functions[lines[j].Function]
		}
		l.Lines = lines
		locations[i+1] = p.AddLocation(l)
	}
	var s Sample
	for i := range q.Samples {
		from := &q.Samples[i]
		s.Stack, s.Values = s.Stack[:0], s.Values[:0]
		for _, l := range from.Stack {
			s.Stack = append(s.Stack, locations[l])
		}
		for _, n := range from.Values {
			s.Values = append(s.Values, sign*n)
		}
		s.Labels = slices.Concat(from.Labels, labels)
		p.AddSample(s)
	}
}
