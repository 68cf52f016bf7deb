// Package inflate decompresses a zlib stream of known size into one buffer. It is for compressed
// debug sections: the first frame of a log may wait for hundreds of megabytes of them.
//
// It does the same as compress/zlib (RFC 1950, RFC 1951), in half the time of the fastest library.
// Its output serves as the window. It loads 64 bits of input at a time. One entry of its tables
// holds everything about a symbol. Another goroutine computes the checksum at the same time.
//
// Every byte of the input may be hostile. Damage is reported as [ErrCorrupt] or
// [io.ErrUnexpectedEOF], never by a panic. Nothing is written beyond the requested size and
// [Slack].
package inflate
