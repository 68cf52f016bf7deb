package symfilter

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// Lookup returns the frames at module-relative addresses of the binary with this build ID, in
// the order of addresses. The frames at one address are innermost first. An address without a
// symbol has no frames. Callers subtract 1 from return addresses.
//
// Lookup waits for the debug file until ctx is done. The error is about the lowest address
// whose lookup failed. It is a [*symbolize.NotFoundError], a [*symbolize.FaultError],
// [symbolize.ErrPending] or [symbolize.ErrClosed]. After a NotFoundError or ErrClosed, no
// further address is looked up. After other errors, the answers for the other addresses are
// valid.
func (o *Opened) Lookup(ctx context.Context, id buildid.ID, addresses ...uint64) (frames [][]symbolize.Frame, err error) {
	order := make([]int, len(addresses))
	for i := range order {
		order[i] = i
	}
	// in ascending order: each unit of the debug information is read once
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
			return frames, err // the same for all addresses
		}
	}
	return frames, err
}
