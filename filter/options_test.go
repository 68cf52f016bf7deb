package filter

import (
	"testing"

	"github.com/symfilter/symfilter/internal/layout"
)

// Colors are passed to the layout as numbers.
func TestColorsAreThoseOfTheLayout(t *testing.T) {
	for c, want := range map[Color]layout.Colors{
		ColorKeep: layout.Kept, ColorAlways: layout.Followed, ColorNever: layout.Removed, ColorForPrinter: layout.Separate,
	} {
		if layout.Colors(c) != want {
			t.Errorf("color %d is %d in the layout, want %d", c, c, want)
		}
	}
}
