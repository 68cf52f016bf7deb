// Package filter is the single pass over one process's log: it keeps the
// address space that the contextual elements describe, asks the symbolizer
// about the addresses of the presentation elements, and prints the same log
// with functions, files and lines in their place.
//
// A [Filter] is an io.WriteCloser: what was written is done. It is also an
// io.ReaderFrom (large blocks, one write for each) and a [markup.Sink] (typed
// elements instead of markup text).
//
// # What comes out
//
// Lines without markup leave as the bytes that came. The layout of the
// elements is LLVM's with its losses mended: text around an element stays, a
// frame without symbols keeps its module, offset and build ID, a malformed
// element stays as it came. See the symbolizer markup format, "Presentation
// elements" and "Contextual elements".
//
// # Concurrency
//
// One goroutine at a time may use a Filter. Many Filters may share one
// [symbolize.Symbolizer] and one [Cache].
package filter
