// Package judge locates the frames of raw backtraces in files, and proves each place.
//
// A [Trace] judges the frames of one trace together. It infers load biases from maps, from frames
// logged with both a process address and an offset in the file, and from the calls before return
// addresses. It checks that the file on this
// machine is the one that ran. A frame that fails a check, or that no check can prove, is not
// located: its line is printed unchanged. The frames of a process provide [Evidence] for or against
// a file, which decides for all of them.
//
// Package dialect reads the lines, and the caller opens the files. A log and its files may be
// hostile. A [dialect.Quota] bounds the work for the traces of a log.
package judge
