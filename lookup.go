package symfilter

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// Lookup returns the frames at each of the module-relative addresses of the binary with this build ID,
// in the order of the addresses; those of one address are innermost first. An address without a
// symbol has none. A return address is looked up one byte before it: the caller subtracts 1.
//
// Lookup waits for the debug file until ctx is done. The error is that of the first address, in
// ascending order, that could not be looked up: a [*symbolize.NotFoundError], a [*symbolize.FaultError],
// or [symbolize.ErrPending]; the other answers are valid.
func (o *Opened) Lookup(ctx context.Context, id buildid.ID, addresses ...uint64) (frames [][]symbolize.Frame, err error) {
	order := make([]int, len(addresses))
	for i := range order {
		order[i] = i
	}
	// Neighbours are in one unit of the debug information, which is read once then.
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(addresses[a], addresses[b]) })
	frames = make([][]symbolize.Frame, len(addresses))
	for n, i := range order {
		if n > 0 && addresses[i] == addresses[order[n-1]] {
			frames[i] = slices.Clone(frames[order[n-1]])
			continue
		}
		var failed error
		frames[i], failed = o.Symbolizer.Ask(ctx, nil, symbolize.Location{ID: id, Addr: addresses[i]}, symbolize.Policy{})
		err = cmp.Or(err, failed)
		if miss := (*symbolize.NotFoundError)(nil); errors.As(failed, &miss) || errors.Is(failed, symbolize.ErrClosed) {
			return frames, err // it is that of all
		}
	}
	return frames, err
}
