package symbolize

import (
	"context"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
)

func init() {
	access.IndexFile = func(ctx context.Context, path string, o access.IndexOptions) (access.Indexed, error) {
		return indexFile(ctx, path, o)
	}
	access.Symbolizer = func(s any) any { return (*inner)(s.(*Symbolizer)) }
}

// An inner is a Symbolizer with methods for packages of this Go module only: see
// [access.Symbolizer].
type inner Symbolizer

// TryCode calls tryCode: it returns an answer only if that needs no wait.
func (i *inner) TryCode(dst []Frame, l Location) ([]Frame, bool) {
	return (*Symbolizer)(i).tryCode(dst, l)
}

// BesideCode calls besideCode: it returns an answer only if that holds up no other question about
// the same file.
func (i *inner) BesideCode(dst []Frame, l Location) ([]Frame, bool) {
	return (*Symbolizer)(i).besideCode(dst, l)
}

// Code answers as Ask does, and gives up when within, which may be nil, is done: see codeWithin.
func (i *inner) Code(ctx, within context.Context, dst []Frame, l Location) ([]Frame, error) {
	return (*Symbolizer)(i).codeWithin(ctx, within, dst, l)
}

// Data answers as AskData does, and gives up when within is done.
func (i *inner) Data(ctx, within context.Context, l Location) (Variable, error) {
	return (*Symbolizer)(i).dataWithin(ctx, within, l)
}

// Layout is layout, and gives up when within is done.
func (i *inner) Layout(ctx, within context.Context, id buildid.ID, name string) ([]object.Segment, bool, error) {
	return (*Symbolizer)(i).layoutWithin(ctx, within, id, name)
}

// Examine is examine, and gives up when within is done.
func (i *inner) Examine(ctx, within context.Context, id buildid.ID, name string, do func(*object.File)) error {
	return (*Symbolizer)(i).examineWithin(ctx, within, id, name, do)
}

// Source is source: it returns the text or checksum of a source file from debug information.
func (i *inner) Source(ctx context.Context, l Location, file string) (text []byte, md5 [16]byte, hasMD5 bool, err error) {
	s, err := (*Symbolizer)(i).source(ctx, l, file)
	return s.text, s.md5, s.hasMD5, err
}

// AwaitLocal calls awaitLocal: it waits until the search for a file on this machine, or the
// inflation of a file, has ended.
func (i *inner) AwaitLocal(ctx context.Context, l Location) { (*Symbolizer)(i).awaitLocal(ctx, l) }

// Search starts to look for a module's file, and never waits.
func (i *inner) Search(id buildid.ID, name string) { i.warmer.search(id, name) }

// Faults returns the number of times that a file broke its reader, could not be used, or cost too
// much. After a fault the answers from a file may differ from earlier answers.
func (i *inner) Faults() int64 { return i.cache.counts.faults.Load() }

// Jobs returns the number of goroutines that may read the debug information of one file at once.
func (i *inner) Jobs() int { return i.o.jobs() }

// Take grants the caller n more bytes of Options.MaxMemory for its own memory, and reports whether
// it did. If necessary it closes the least recently used files; it never waits. The caller returns
// the bytes with Give. Many goroutines may call it.
func (i *inner) Take(n int64) bool { return i.cache.lend(n) }

// Give takes back n bytes that Take granted.
func (i *inner) Give(n int64) { i.cache.memory.give(n, &i.cache.memory.work) }
