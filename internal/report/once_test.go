package report

import (
	"slices"
	"strconv"
	"testing"
)

func TestAMessageIsReportedOnce(t *testing.T) {
	var got []string
	o := Once{To: func(s string) { got = append(got, s) }}
	for range 2 {
		o.Report("a")
		o.Report("b")
	}
	if want := []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
	for i := range 2 * maxOnce {
		o.Report(strconv.Itoa(i))
	}
	if len(got) != maxOnce {
		t.Errorf("%d messages were reported, want %d", len(got), maxOnce)
	}
	new(Once).Report("nobody is told")
}
