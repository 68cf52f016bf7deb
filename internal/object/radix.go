package object

// sortByAddr sorts entries by address and keeps the order of entries with equal addresses. It is a
// radix sort, 11 bits a pass, of the bits that differ. A comparing sort takes eight times as long,
// and would dominate the first lookups in a big file.
func sortByAddr(entries []symbolEntry) {
	const bits = 11
	if len(entries) < 2 {
		return
	}
	var differ uint64
	for i := range entries {
		differ |= entries[i].addr ^ entries[0].addr
	}
	from, to := entries, make([]symbolEntry, len(entries))
	for shift := uint(0); shift < 64 && differ>>shift != 0; shift += bits {
		if differ>>shift&(1<<bits-1) == 0 {
			continue
		}
		var at [1 << bits]uint32 // there are fewer than 2^32 entries
		for i := range from {
			at[from[i].addr>>shift&(1<<bits-1)]++
		}
		sum := uint32(0)
		for i := range at {
			at[i], sum = sum, sum+at[i]
		}
		for i := range from {
			d := &at[from[i].addr>>shift&(1<<bits-1)]
			to[*d] = from[i]
			*d++
		}
		from, to = to, from
	}
	if &from[0] != &entries[0] {
		copy(entries, from)
	}
}
