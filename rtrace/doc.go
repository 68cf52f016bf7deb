// Package rtrace reads the reports of sp-rtrace and functracer, which list what
// a program allocated and freed, and gives their addresses names.
//
// A [Reader] turns bytes into records: a call, a frame of its backtrace, a
// mapped file. It loses nothing: a line that is no record is a comment.
// [NewMarkup] renders records as symbolizer markup, and [NewReport] as the
// report again, or as JSON Lines (report.schema.json). Before either,
// [Processing] may leave calls out and group them, as sp-rtrace-postproc does.
//
// A report says where the code of each file was mapped, but not which part of
// the file that is. The mapping is compared with the file's executable
// segments: where it is one of them, it gives the load bias, and where it is
// none, the file is not the one that ran.
//
// The format is sp-rtrace's text protocol, and what its tools write beside it.
package rtrace
