package sgr

// basics are the sixteen colours as xterm shows them, each 0xrrggbb.
var basics = [16]int{
	0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
	0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
}

// Basic returns the nearest of the sixteen basic colours: 0 to 7 for Black to White, 8 to 15 for
// their bright variants. ok is false for the terminal's default colour.
func (c Color) Basic() (n int, ok bool) {
	n = int(c &^ kind)
	switch c & kind {
	case basic:
		return n, true
	case palette:
		if n < len(basics) {
			return n, true
		}
		return nearest(paletteRGB(n)), true
	case rgb:
		return nearest(n), true
	}
	return 0, false
}

// paletteRGB returns the colour n of xterm's palette, for an n of 16 or more: a cube with six
// levels of each primary colour, then 24 greys.
func paletteRGB(n int) int {
	if n >= 232 {
		return (8 + 10*(n-232)) * 0x010101
	}
	level := func(n int) int {
		if n == 0 {
			return 0
		}
		return 55 + 40*n
	}
	n -= 16
	return level(n/36)<<16 | level(n/6%6)<<8 | level(n%6)
}

// nearest returns the basic colour with the smallest distance from v.
func nearest(v int) (best int) {
	least := 1 << 30
	for i, b := range basics {
		d := 0
		for shift := 0; shift <= 16; shift += 8 {
			diff := v>>shift&0xff - b>>shift&0xff
			d += diff * diff
		}
		if d < least {
			least, best = d, i
		}
	}
	return best
}
