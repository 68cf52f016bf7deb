// Package rtrace reads the reports of sp-rtrace and functracer, and resolves their addresses. The
// reports list the resources that a program allocated and freed.
//
// Nothing of a report is lost: a line that is not a record is a comment. [NewMarkup] renders the
// records (calls, frames of their backtraces, mapped files) as symbolizer markup. [NewReport]
// prints them as a report again, or as JSON Lines (report.schema.json). Before that, [Processing]
// may leave calls out and group them, as sp-rtrace-postproc does.
//
// A report names the address range of each mapped file, but not which part of the file was mapped.
// The size of the mapping is compared with the file's executable segments. If one of them fits, it
// gives the load bias. If none fits, the file is not the one that ran.
//
// The format is sp-rtrace's text protocol, with the additions of its tools.
package rtrace
