package deflate

import (
	"math/bits"
	"slices"
)

const (
	minMatch = 3
	// maxBits bounds the bits of a literal, a length or a distance, so that four literals fit into a
	// word. RFC 1951 allows 15, which saves a thousandth of the size.
	maxBits = 12

	numLiterals  = 286 // symbols for literals and lengths
	numDistances = 30
)

// codes are the codes of a block.
type codes struct {
	// A code has its bits from bit 8 on, and their number in bits 0 to 7. That of a length or a
	// distance includes the extra bits.
	literals  [numLiterals]uint32
	matches   [maxMatch + 1]uint32
	distances [numDistances]uint32

	bits   [numLiterals + numDistances]uint8 // number of bits of each symbol
	sorted [numLiterals]uint32               // scratch: frequencies with their symbols
	weight [numLiterals]uint32               // scratch
}

// lengthSymbol returns the symbol for the length of a match, less that of the first length.
func lengthSymbol(length uint32) uint32 {
	if length == maxMatch {
		return 28
	}
	x := length - minMatch
	if x < 8 {
		return x
	}
	n := uint32(bits.Len32(x)) - 3
	return n<<2 + x>>n
}

// distanceSymbol returns the symbol for a distance, which is given less one, and the number of its
// low bits that are the extra bits.
func distanceSymbol(distance uint32) (symbol, extra uint32) {
	if distance < 4 {
		return distance, 0
	}
	n := uint32(bits.Len32(distance)) - 2
	return n<<1 + distance>>n, n
}

// lengths sets the number of bits of each symbol to at most limit, so that symbols with high
// frequencies have few. At least two symbols have bits.
func (c *codes) lengths(frequencies []uint32, limit int, all []uint8) {
	clear(all)
	sorted := c.sorted[:0]
	for symbol, n := range frequencies {
		if n > 0 {
			sorted = append(sorted, n<<9|uint32(symbol))
		}
	}
	for symbol := uint32(0); len(sorted) < 2; symbol++ {
		if frequencies[symbol] == 0 {
			sorted = append(sorted, 1<<9|symbol)
		}
	}
	slices.Sort(sorted)
	n := len(sorted)
	a := c.weight[:n]
	for i, s := range sorted {
		a[i] = s >> 9
	}
	minimumRedundancy(a)
	var counts [33]int
	for _, depth := range a {
		counts[min(int(depth), limit)]++
	}
	// Shorten codes that are too long, at the expense of others.
	total := 0
	for depth := 1; depth <= limit; depth++ {
		total += counts[depth] << (limit - depth)
	}
	for ; total > 1<<limit; total-- {
		counts[limit]--
		depth := limit - 1
		for counts[depth] == 0 {
			depth--
		}
		counts[depth]--
		counts[depth+1] += 2
	}
	i := 0
	for depth := limit; depth > 0; depth-- {
		for range counts[depth] {
			all[sorted[i]&511] = uint8(depth)
			i++
		}
	}
}

// minimumRedundancy replaces ascending frequencies, at least two, by the depths of their leaves in
// a Huffman tree: A. Moffat, J. Katajainen, "In-Place Calculation of Minimum-Redundancy Codes"
// (1995).
func minimumRedundancy(a []uint32) {
	n := len(a)
	a[0] += a[1]
	root, leaf := 0, 2
	for next := 1; next < n-1; next++ { // a[next] becomes an inner node
		if leaf >= n || a[root] < a[leaf] {
			a[next] = a[root]
			a[root] = uint32(next)
			root++
		} else {
			a[next] = a[leaf]
			leaf++
		}
		if leaf >= n || root < next && a[root] < a[leaf] {
			a[next] += a[root]
			a[root] = uint32(next)
			root++
		} else {
			a[next] += a[leaf]
			leaf++
		}
	}
	a[n-2] = 0
	for next := n - 3; next >= 0; next-- {
		a[next] = a[a[next]] + 1
	}
	available, used, depth := 1, 0, uint32(0)
	root = n - 2
	for next := n - 1; available > 0; {
		for root >= 0 && a[root] == depth {
			used++
			root--
		}
		for available > used {
			a[next] = depth
			next--
			available--
		}
		available, used = 2*used, 0
		depth++
	}
}

// assign sets the codes for numbers of bits, in the order of RFC 1951, 3.2.2.
func assign(all []uint32, bitsOf []uint8) {
	var next, counts [maxBits + 2]uint32
	for _, n := range bitsOf {
		counts[n]++
	}
	counts[0] = 0
	for n := 1; n <= maxBits; n++ {
		next[n] = (next[n-1] + counts[n-1]) << 1
	}
	for symbol, n := range bitsOf {
		if n == 0 {
			all[symbol] = 0
			continue
		}
		all[symbol] = uint32(bits.Reverse16(uint16(next[n]))>>(16-n))<<8 | uint32(n)
		next[n]++
	}
}

// setMatches sets the codes of lengths, with their extra bits.
func (c *codes) setMatches() {
	for length := uint32(minMatch); length <= maxMatch; length++ {
		symbol := lengthSymbol(length)
		code := c.literals[endOfBlock+1+symbol]
		if symbol >= 8 && symbol < 28 && code != 0 {
			extra := symbol/4 - 1
			value := (length - minMatch) & (1<<extra - 1)
			code += value<<(8+code&255) + extra // the sum has at most 17 bits
		}
		c.matches[length] = code
	}
}
