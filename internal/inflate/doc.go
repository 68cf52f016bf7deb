// Package inflate decompresses a zlib stream of known size into one buffer. It is for compressed
// debug sections: the first frame of a log may wait for hundreds of megabytes of them.
//
// It does the same as compress/zlib (RFC 1950, RFC 1951), in half the time of the fastest library.
// Its output serves as the window, it loads 64 bits at a time, and one table entry holds everything
// about a symbol. Another goroutine computes the checksum.
//
// Every byte of the input may be hostile. Damage is reported as [ErrCorrupt] or
// [io.ErrUnexpectedEOF], never by a panic. Writes end at the requested size plus [Slack].
package inflate
