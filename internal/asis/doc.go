// Package asis answers the command lines and the protocol of other symbolizers. Programs that start
// such a symbolizer can start symfilter instead. The answers have the same bytes; docs/drop-in.md
// lists the intended differences.
//
// [Named] finds the program for a file name. [Program.Parse] reads its command line into a [Line].
// A [Session] answers the questions on the command line or on standard input, with the caller's
// symbolizer. It flushes an answer before it waits for another question, since the client may wait
// for the answer.
//
// Questions are hostile: they may come from a log.
package asis

const (
	// maximum bytes of a question; the rest of its line is ignored. LLVM splits longer lines after
	// 1,023 bytes
	maxQuestion = 64 << 10
	chunk       = 64 << 10 // bytes of answers that are written together
	maxModules  = 1024     // paths of modules remembered
	// bytes of all @FILE response files; the kernel's limit for a command line is similar
	maxResponse      = 1 << 20
	maxResponseDepth = 16       // nested @FILE response files
	maxSource        = 16 << 20 // bytes read of a source file; generated files have some MiB
	maxContext       = 1 << 16  // source lines printed for a frame; LLVM has no bound
)
