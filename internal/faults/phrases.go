package faults

import "math/bits"

// phrases is a set of up to 64 texts of at least four bytes each. One search finds all of them:
// about 20 lines are searched before each backtrace.
type phrases struct {
	texts []string
	// places[i][c] has a bit for each text whose byte i is c
	places [4][256]uint64
}

func newPhrases(texts []string) *phrases {
	p := &phrases{texts: texts}
	for i, text := range texts {
		for place := range p.places {
			p.places[place][text[place]] |= 1 << i
		}
	}
	return p
}

// next returns the first offset in b, not below from, at which texts of p begin. set has a bit for
// each of these texts. If there are none, next returns len(b) and 0.
func (p *phrases) next(b []byte, from int) (at int, set uint64) {
	last := len(p.places) - 1
	for at = from; at+last < len(b); at++ {
		if p.places[0][b[at]]&p.places[1][b[at+1]] == 0 {
			continue
		}
		set = ^uint64(0)
		for place := range p.places {
			set &= p.places[place][b[at+place]]
		}
		for left := set; left != 0; left &= left - 1 {
			i := bits.TrailingZeros64(left)
			if text := p.texts[i]; len(b)-at < len(text) || string(b[at:at+len(text)]) != text {
				set &^= 1 << i
			}
		}
		if set != 0 {
			return at, set
		}
	}
	return len(b), 0
}
