package debuginfod

import (
	"context"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
)

func init() {
	access.Debuginfod = func(c any) any { return (*inner)(c.(*Client)) }
}

// An inner is a Client with methods for packages of this Go module only: see [access.Debuginfod].
type inner Client

// CacheInfo examines the cache. It changes nothing.
func (i *inner) CacheInfo() access.CacheInfo { return i.cache.info() }

// CheckCache returns the reason why an existing cache is not used, and nil if there is no cache.
func (i *inner) CheckCache() error { return i.cache.check() }

// Probe asks one server for the debug file of id, or of a random ID if id is zero.
func (i *inner) Probe(ctx context.Context, server string, id buildid.ID) access.ProbeResult {
	return (*Client)(i).probe(ctx, server, id)
}

// OpenSource returns the file that Source reads.
func (i *inner) OpenSource(ctx context.Context, id buildid.ID, path string) (*buildid.File, error) {
	return (*Client)(i).openSource(ctx, id, path, func(buildid.Attempt) {})
}

// Remembered returns the number of build IDs for which a recorded miss was used in place of a
// request.
func (i *inner) Remembered() int { return (*Client)(i).rememberedIDs() }

// Unasked counts the build IDs that no server was asked for, because too many were new.
func (i *inner) Unasked() int { return (*Client)(i).unasked() }
