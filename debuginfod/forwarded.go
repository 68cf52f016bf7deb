package debuginfod

import (
	"context"
	"strings"
)

// MaxForwarded is how many servers a request may have passed, as in elfutils
// (--forwarded-ttl-limit). A request that has passed more is not passed on.
const MaxForwarded = 8

// forwardedKey is the key of the value of WithForwarded.
type forwardedKey struct{}

// WithForwarded returns a context for searches that a request to this program's own server asks
// for. chain is the X-Forwarded-For that the servers get: the one of the request, and this server's
// name.
//
// Such a search shares neither its download nor a place among the downloads with others, since
// these may wait for the server that has sent the request, and that for this one. Its misses are
// not kept: a chain that is too long is one, too.
func WithForwarded(ctx context.Context, chain string) context.Context {
	return context.WithValue(ctx, forwardedKey{}, chain)
}

// forwarded returns the chain of a context; empty if it has none.
func forwarded(ctx context.Context) string {
	chain, _ := ctx.Value(forwardedKey{}).(string)
	return chain
}

// passed returns the number of servers before the last one in a chain, at most MaxForwarded.
func passed(chain string) int { return min(strings.Count(chain, ","), MaxForwarded) }
