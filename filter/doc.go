// Package filter symbolizes a log in a single pass. It keeps the address space that the contextual
// elements describe. It asks the symbolizer about the addresses in presentation elements and raw
// backtraces, and replaces these with functions, files and lines.
//
// A [Filter] is an io.WriteCloser: when Write returns, the complete lines have been printed. It is
// also an io.ReaderFrom, which reads large blocks and writes each at once. As a [markup.Sink] it
// receives typed elements instead of markup text.
//
// # What comes out
//
// Lines without markup or a frame are unchanged. Elements have the layout of LLVM's filter, but
// nothing is lost. Text around an element stays. A frame without symbols keeps its module, offset
// and build ID. A malformed element is unchanged. See the symbolizer markup format, "Presentation
// elements" and "Contextual elements".
//
// # Concurrency
//
// One goroutine at a time may use a Filter. Many Filters may share one [symbolize.Symbolizer] and
// one [Cache].
package filter
