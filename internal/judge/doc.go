// Package judge locates the frames of raw backtraces in files, and proves each location.
//
// A [Trace] judges the frames of one trace together. It infers load biases from maps, from frames
// logged with both a process address and an offset in the file, and from the calls before return
// addresses. It checks that the file on this machine is the one that ran. A frame that fails a
// check, or that no check can prove, is not located: its line is printed unchanged. Each frame adds
// to the [Evidence] for or against its file, which decides for all frames of the process.
//
// Package dialect reads the lines, and the caller opens the files. A log and its files may be
// hostile. A [dialect.Quota] bounds the work for the traces of a log.
package judge
