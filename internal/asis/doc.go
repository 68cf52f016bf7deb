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
// Questions are hostile: they may come from a log. A question has at most 64 KiB, and the rest of
// its line is ignored. What is kept for files that cannot be read is bounded, too.
package asis
