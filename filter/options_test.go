package filter

import (
	"testing"

	"github.com/symfilter/symfilter/internal/layout"
)

// The values of Color must equal those of layout.Colors, since they are converted as numbers.
func TestColorsAreThoseOfTheLayout(t *testing.T) {
	for c, want := range map[Color]layout.Colors{
		ColorKeep: layout.Kept, ColorAlways: layout.Followed, ColorNever: layout.Removed, ColorForPrinter: layout.Separate,
	} {
		if layout.Colors(c) != want {
			t.Errorf("color %d is %d in the layout, want %d", c, c, want)
		}
	}
}
