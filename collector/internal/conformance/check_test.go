package conformance

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// valid returns a profile that keeps all rules. Each table has two entries.
func valid() (pprofile.Profiles, pprofile.ProfilesDictionary, pprofile.Profile) {
	p := pprofile.NewProfiles()
	d := p.Dictionary()
	d.StringTable().Append("", "text")
	for range 2 {
		d.MappingTable().AppendEmpty()
		d.LocationTable().AppendEmpty()
		d.FunctionTable().AppendEmpty()
		d.LinkTable().AppendEmpty()
		d.AttributeTable().AppendEmpty()
		d.StackTable().AppendEmpty()
	}
	m := d.MappingTable().At(1)
	m.SetMemoryStart(0x1000)
	m.SetMemoryLimit(0x2000)
	m.AttributeIndices().Append(1)
	l := d.LocationTable().At(1)
	l.SetMappingIndex(1)
	l.Lines().AppendEmpty().SetFunctionIndex(1)
	d.FunctionTable().At(1).SetNameStrindex(1)
	d.LinkTable().At(1).SetSpanID(pcommon.SpanID{1})
	d.AttributeTable().At(1).SetKeyStrindex(1)
	d.StackTable().At(1).LocationIndices().Append(1)
	profile := p.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for range 2 {
		s := profile.Samples().AppendEmpty()
		s.SetStackIndex(1)
		s.SetLinkIndex(1)
		s.Values().Append(1)
	}
	return p, d, profile
}

func TestViolationsAreReported(t *testing.T) {
	for _, test := range []struct {
		violate func(d pprofile.ProfilesDictionary, p pprofile.Profile)
		want    []string
	}{
		{func(pprofile.ProfilesDictionary, pprofile.Profile) {}, nil},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) { d.StringTable().SetAt(0, "x") }, []string{"string 0 is not empty"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) { d.StringTable().Append("text") }, []string{"string 2 is string 1"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) { d.MappingTable().At(0).SetMemoryLimit(9) }, []string{"mapping 0 is not empty"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) { d.MappingTable().At(1).SetMemoryStart(0x2000) }, []string{"mapping 1 begins at 0x2000 and ends at 0x2000"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) { d.MappingTable().At(1).SetFilenameStrindex(2) }, []string{"mapping 1: there is no string 2"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) {
			d.MappingTable().At(1).AttributeIndices().Append(1)
		}, []string{"mapping 1: two attributes have key 1"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) { d.LocationTable().At(1).SetMappingIndex(-1) }, []string{"location 1: there is no mapping -1", "nothing refers to mapping 1"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) {
			d.LocationTable().At(1).CopyTo(d.LocationTable().AppendEmpty())
		}, []string{"location 2 is location 1", "nothing refers to location 2"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) {
			d.LocationTable().At(1).Lines().At(0).SetColumn(-1)
		}, []string{"location 1, line 0: 0:-1 is negative"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) {
			d.LocationTable().At(1).Lines().At(0).SetFunctionIndex(2)
		}, []string{"location 1, line 0: there is no function 2", "nothing refers to function 1"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) {
			d.FunctionTable().At(1).CopyTo(d.FunctionTable().AppendEmpty())
		}, []string{"function 2 is function 1", "nothing refers to function 2"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) { d.FunctionTable().At(1).SetStartLine(-1) }, []string{"function 1 begins at line -1"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) {
			d.LinkTable().RemoveIf(func(pprofile.Link) bool { return true })
		}, []string{"there is no link 0", "profile 0.0.0, sample 0: there is no link 1", "profile 0.0.0, sample 1: there is no link 1"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) { d.AttributeTable().At(1).SetUnitStrindex(7) }, []string{"attribute 1: there is no string 7"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) {
			d.AttributeTable().At(0).Value().SetBool(false)
		}, []string{"attribute 0 is not empty"}},
		{func(d pprofile.ProfilesDictionary, _ pprofile.Profile) {
			d.StackTable().At(1).LocationIndices().Append(2)
		}, []string{"stack 1, frame 1: there is no location 2"}},
		{func(_ pprofile.ProfilesDictionary, p pprofile.Profile) { p.PeriodType().SetUnitStrindex(2) }, []string{"profile 0.0.0: there is no string 2"}},
		{func(_ pprofile.ProfilesDictionary, p pprofile.Profile) { p.SetOriginalPayloadFormat("jfr") }, []string{"profile 0.0.0 has an original payload without a format, or a format without a payload"}},
		{func(_ pprofile.ProfilesDictionary, p pprofile.Profile) { p.Samples().At(1).Values().Append(1) }, []string{"profile 0.0.0, sample 1 has 2 values and 0 times"}},
		{func(_ pprofile.ProfilesDictionary, p pprofile.Profile) {
			p.SetDurationNano(5)
			p.Samples().At(1).TimestampsUnixNano().Append(5)
		}, []string{"profile 0.0.0, sample 1 has 1 values and 1 times, unlike the first sample", "profile 0.0.0, sample 1: time 5 is not in 0 to 5"}},
	} {
		p, d, profile := valid()
		test.violate(d, profile)
		if diff := cmp.Diff(test.want, slices.Compact(Check(p))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
