package debuginfod

import (
	"context"
	"strings"
)

// MaxForwarded is the number of servers after which a request is not passed on, as in elfutils
// (--forwarded-ttl-limit).
const MaxForwarded = 8

type forwardedKey struct{}

// WithForwarded returns a context for searches on behalf of a request to this program's own server.
// chain is the X-Forwarded-For for other servers: the value in the request, and this server's name.
//
// Such a search uses its own download and its own kind of download slot. Otherwise there could be a
// deadlock: other searches may wait for the server that sent the request, while that server waits
// for this search. The misses of such a search are not kept: a miss may only mean that the chain is
// too long.
func WithForwarded(ctx context.Context, chain string) context.Context {
	return context.WithValue(ctx, forwardedKey{}, chain)
}

func forwarded(ctx context.Context) string {
	chain, _ := ctx.Value(forwardedKey{}).(string)
	return chain
}

// passed returns the number of servers before the last one in a chain, at most MaxForwarded.
func passed(chain string) int { return min(strings.Count(chain, ","), MaxForwarded) }
