// Package inflate decompresses a zlib stream whose size is known beforehand, into one buffer: compressed debug sections, of which a first
// frame waits for hundreds of megabytes.
//
// It does what compress/flate does (RFC 1950, RFC 1951) in half the time of the fastest library, because it needs no window but the output itself, and decodes
// from 64 bits at a time by tables that say all about a symbol in one entry. The checksum is taken beside, on another
// processor.
//
// Every byte of the input is hostile: it ends in [ErrCorrupt] or [io.ErrUnexpectedEOF], never in a panic, and nothing is written behind the size that
// was asked for.
package inflate
