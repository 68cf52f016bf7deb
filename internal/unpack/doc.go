// Package unpack unpacks untrusted bytes within bounds, for inputs, rotated logs and object files.
//
// A [Reader] unpacks a compressed file of any size (gzip, zstd, xz, bzip2) as it is read, and
// passes on the bytes after it: a log may continue as text. A [Stream] is a section compressed by
// zlib or zstd, whose header has the unpacked size; it is unpacked into one buffer or file.
// [MeasureXZ] and [ContentSize] return sizes without unpacking.
//
// Every byte may be hostile. Windows and dictionaries are taken from a [Memory] before a decoder
// allocates them, sizes are checked as bytes arrive, and a panic of a decoder is an error.
package unpack
