// Package unpack unpacks untrusted bytes within bounds, for inputs, rotated logs and object files.
//
// A [Reader] unpacks a compressed file of any size (gzip, zstd, xz, bzip2). It passes on the bytes
// after the file: a log may continue as text. A [Stream] is a section compressed by zlib or zstd,
// with a known unpacked size. It is unpacked into one buffer or file. [MeasureXZ] and [ContentSize]
// return sizes without unpacking.
//
// Every byte may be hostile. Windows and dictionaries are taken from a [Memory] before a decoder
// allocates them. Sizes are checked as bytes arrive. A panic of a decoder becomes an error.
package unpack
