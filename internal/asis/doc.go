// Package asis answers the command lines and the protocol of other symbolizers, so that programs
// which start one of them can start symfilter instead. The answers are the other program's bytes.
// docs/drop-in.md lists the differences that are intended.
//
// [Named] finds the program that a name stands for. [Program.Parse] reads its command line into a
// [Line], which says where debug files are, and what is asked. A [Session] answers the questions of
// the command line or of standard input, with a symbolizer that the caller has opened as the Line
// describes. It flushes an answer before it waits for another question, since the program that
// asks may wait for the answer.
//
// Questions are hostile: they may come from a log.
package asis

// Limits, one a line, with unit and reason.
const (
	// bytes of a question; the rest of its line is ignored. LLVM splits lines after 1,023 bytes
	maxQuestion = 64 << 10
	chunk       = 64 << 10 // bytes of answers that are written together
	maxModules  = 1024     // paths of modules remembered
	// bytes of a file of words, @FILE; the kernel's limit for a command line is similar
	maxResponse      = 1 << 20
	maxResponseDepth = 16       // files of words that name files
	maxSource        = 16 << 20 // bytes read of a source file; generated files have some MiB
	maxContext       = 1 << 16  // source lines printed for a frame; LLVM has no bound
)
