// Package dialect recognizes the backtraces that programs print without markup: a line, and the
// trace that it belongs to, become located frames, each with a module and a place in it.
//
// A [Reader] is given the lines that may have a frame, and finds the frames by the grammars of
// [Dialects]. A frame of a module with a build ID can be resolved at once. Others are located by
// the [Trace] that they belong to: it finds load biases from maps and from frames that have two
// numbers, and checks that the file on this machine is the one that ran. A frame that fails a
// check, or that no check can prove, is not located: its line stays as it is.
//
// The package depends neither on a symbolizer nor on the layout of the output. The [Edit] values of
// a [Frame] are the places in its line that an answer replaces or follows.
//
// Lines are hostile: every grammar takes time linear in the length of the line, and nothing that a
// line names is opened by this package.
package dialect
