// Package conformance checks profiles against the rules in the comments of OTLP's profiles.proto
// (v1development, version 0.4.0 of the Go module). Only tests import it.
package conformance

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Check returns a line for each violation of a rule: violations in tables, then in profiles, then
// unused entries. The rules are:
//
//   - entry 0 of each table is empty: index 0 means that there is no entry
//   - indexes are in range
//   - no table has an entry twice, and no record has an attribute's key twice
//   - mappings have a range, or none; numbers of lines and columns are not negative
//   - each entry but the first is used, except strings: Check does not see the strings that
//     attributes of resources use, since they are resolved when a profile is read
//   - each sample has one value and no times, or only times, or as many values as times; the form
//     is the same for all samples of a profile
//   - times are within the time range of the profile
//   - a profile has both an original payload and its format, or neither
func Check(p pprofile.Profiles) []string {
	d := p.Dictionary()
	c := &checker{dict: d, sizes: map[string]int{
		"string": d.StringTable().Len(), "mapping": d.MappingTable().Len(), "location": d.LocationTable().Len(),
		"function": d.FunctionTable().Len(), "link": d.LinkTable().Len(), "attribute": d.AttributeTable().Len(), "stack": d.StackTable().Len(),
	}, used: make(map[string]map[int32]bool)}
	c.strings()
	c.mappings()
	c.locations()
	c.functions()
	c.links()
	c.attributes()
	c.stacks()
	for i, resource := range p.ResourceProfiles().All() {
		for j, scope := range resource.ScopeProfiles().All() {
			for k, profile := range scope.Profiles().All() {
				c.profile(fmt.Sprintf("profile %d.%d.%d", i, j, k), profile)
			}
		}
	}
	c.orphans()
	return c.violations
}

type checker struct {
	dict       pprofile.ProfilesDictionary
	sizes      map[string]int // by table
	used       map[string]map[int32]bool
	violations []string
}

func (c *checker) report(format string, args ...any) {
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

// index reports an index that is not in the table, and otherwise records its use.
func (c *checker) index(where, table string, i int32) {
	if i < 0 || int(i) >= c.sizes[table] {
		c.report("%s: there is no %s %d", where, table, i)
		return
	}
	if c.used[table] == nil {
		c.used[table] = make(map[int32]bool)
	}
	c.used[table][i] = true
}

// refer checks the indexes of the attributes of a record, whose keys must differ.
func (c *checker) refer(where string, attributes pcommon.Int32Slice) {
	keys := make(map[int32]bool)
	for _, i := range attributes.All() {
		c.index(where, "attribute", i)
		if i < 0 || int(i) >= c.dict.AttributeTable().Len() {
			continue
		}
		key := c.dict.AttributeTable().At(int(i)).KeyStrindex()
		if keys[key] {
			c.report("%s: two attributes have key %d", where, key)
		}
		keys[key] = true
	}
}

// table checks that the table name begins with an empty entry, and that no entry occurs twice.
// empty is set if entry 0 is empty. Two entries are equal if key returns equal values for their
// indexes.
func table[K comparable](c *checker, name string, empty bool, key func(i int) K) {
	n := c.sizes[name]
	if n == 0 {
		c.report("there is no %s 0", name)
		return
	}
	if !empty {
		c.report("%s 0 is not empty", name)
	}
	seen := make(map[K]int)
	for i := range n {
		k := key(i)
		if first, ok := seen[k]; ok {
			c.report("%s %d is %s %d", name, i, name, first)
			continue
		}
		seen[k] = i
	}
}

func (c *checker) strings() {
	all := c.dict.StringTable()
	table(c, "string", all.Len() > 0 && all.At(0) == "", all.At)
}

func (c *checker) mappings() {
	all := c.dict.MappingTable()
	type key struct {
		start, limit, offset uint64
		file                 int32
		attributes           string
	}
	of := func(i int) key {
		m := all.At(i)
		return key{m.MemoryStart(), m.MemoryLimit(), m.FileOffset(), m.FilenameStrindex(), set(m.AttributeIndices())}
	}
	table(c, "mapping", all.Len() > 0 && of(0) == key{attributes: "[]"}, of)
	for i, m := range all.All() {
		where := fmt.Sprint("mapping ", i)
		c.index(where, "string", m.FilenameStrindex())
		c.refer(where, m.AttributeIndices())
		if m.MemoryStart() >= m.MemoryLimit() && (m.MemoryStart() != 0 || m.MemoryLimit() != 0) {
			c.report("%s begins at %#x and ends at %#x", where, m.MemoryStart(), m.MemoryLimit())
		}
	}
}

func (c *checker) locations() {
	all := c.dict.LocationTable()
	of := func(i int) string {
		l := all.At(i)
		k := fmt.Sprint(l.MappingIndex(), l.Address(), set(l.AttributeIndices()))
		for _, line := range l.Lines().All() {
			k += fmt.Sprint(" ", line.FunctionIndex(), line.Line(), line.Column())
		}
		return k
	}
	table(c, "location", all.Len() > 0 && of(0) == fmt.Sprint(0, 0, "[]"), of)
	for i, l := range all.All() {
		where := fmt.Sprint("location ", i)
		c.index(where, "mapping", l.MappingIndex())
		c.refer(where, l.AttributeIndices())
		for j, line := range l.Lines().All() {
			c.index(fmt.Sprintf("%s, line %d", where, j), "function", line.FunctionIndex())
			if line.Line() < 0 || line.Column() < 0 {
				c.report("%s, line %d: %d:%d is negative", where, j, line.Line(), line.Column())
			}
		}
	}
}

func (c *checker) functions() {
	all := c.dict.FunctionTable()
	type key struct {
		name, system, file int32
		line               int64
	}
	of := func(i int) key {
		f := all.At(i)
		return key{f.NameStrindex(), f.SystemNameStrindex(), f.FilenameStrindex(), f.StartLine()}
	}
	table(c, "function", all.Len() > 0 && of(0) == key{}, of)
	for i := range all.Len() {
		where, f := fmt.Sprint("function ", i), of(i)
		for _, s := range []int32{f.name, f.system, f.file} {
			c.index(where, "string", s)
		}
		if f.line < 0 {
			c.report("%s begins at line %d", where, f.line)
		}
	}
}

func (c *checker) links() {
	all := c.dict.LinkTable()
	type key struct {
		trace pcommon.TraceID
		span  pcommon.SpanID
	}
	of := func(i int) key { return key{all.At(i).TraceID(), all.At(i).SpanID()} }
	table(c, "link", all.Len() > 0 && of(0) == key{}, of)
}

func (c *checker) attributes() {
	all := c.dict.AttributeTable()
	type key struct {
		key, unit int32
		kind      pcommon.ValueType
		value     string
	}
	of := func(i int) key {
		a := all.At(i)
		return key{a.KeyStrindex(), a.UnitStrindex(), a.Value().Type(), a.Value().AsString()}
	}
	table(c, "attribute", all.Len() > 0 && of(0) == key{}, of)
	for i := range all.Len() {
		c.index(fmt.Sprint("attribute ", i), "string", of(i).key)
		c.index(fmt.Sprint("attribute ", i), "string", of(i).unit)
	}
}

func (c *checker) stacks() {
	all := c.dict.StackTable()
	of := func(i int) string { return fmt.Sprint(all.At(i).LocationIndices().AsRaw()) }
	table(c, "stack", all.Len() > 0 && of(0) == "[]", of)
	for i, s := range all.All() {
		for j, l := range s.LocationIndices().All() {
			c.index(fmt.Sprintf("stack %d, frame %d", i, j), "location", l)
		}
	}
}

func (c *checker) profile(where string, p pprofile.Profile) {
	c.refer(where, p.AttributeIndices())
	for _, v := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
		c.index(where, "string", v.TypeStrindex())
		c.index(where, "string", v.UnitStrindex())
	}
	if (p.OriginalPayloadFormat() == "") != (p.OriginalPayload().Len() == 0) {
		c.report("%s has an original payload without a format, or a format without a payload", where)
	}
	begin, end := uint64(p.Time()), uint64(p.Time())+p.DurationNano()
	for i, s := range p.Samples().All() {
		sample := fmt.Sprintf("%s, sample %d", where, i)
		c.index(sample, "stack", s.StackIndex())
		c.index(sample, "link", s.LinkIndex())
		c.refer(sample, s.AttributeIndices())
		values, times := s.Values().Len(), s.TimestampsUnixNano().Len()
		if values == 0 && times == 0 || times == 0 && values != 1 || times > 0 && values > 0 && times != values {
			c.report("%s has %d values and %d times", sample, values, times)
		}
		if first := p.Samples().At(0); (first.Values().Len() > 0) != (values > 0) || (first.TimestampsUnixNano().Len() > 0) != (times > 0) {
			c.report("%s has %d values and %d times, unlike the first sample", sample, values, times)
		}
		for _, at := range s.TimestampsUnixNano().All() {
			if at < begin || at >= end {
				c.report("%s: time %d is not in %d to %d", sample, at, begin, end)
			}
		}
	}
}

func (c *checker) orphans() {
	for _, name := range []string{"mapping", "location", "function", "link", "attribute", "stack"} {
		for i := 1; i < c.sizes[name]; i++ {
			if !c.used[name][int32(i)] {
				c.report("nothing refers to %s %d", name, i)
			}
		}
	}
}

// set returns the members of a set of indexes as text.
func set(indexes pcommon.Int32Slice) string {
	return fmt.Sprint(slices.Sorted(slices.Values(indexes.AsRaw())))
}
