// Package valgrind reads the XML reports of Valgrind's tools and gives stripped
// frames their names back.
//
// A [Reader] turns bytes into records: an error, a message, the start of a
// process. It is no XML parser: a quarter of real reports are not well-formed
// (forked children write into one file, a process is killed, a thread's name is
// not escaped), and it loses nothing of these. [NewMarkup] renders records as
// symbolizer markup, text that reads like Valgrind's own report, and [NewReport]
// as JSON Lines (report.schema.json).
//
// A report names the file of each frame and an address, but not where the file
// was loaded. That load bias is found from an exact map, or inferred: of all
// biases that put every address of the file into its code, the one that the
// facts of the report and of the file leave over. If several are left, there is
// none: see [Options].
//
// The formats are protocols 1 to 4 as Valgrind's documentation has them
// (xml-output.txt, xml-output-protocol4.txt), and 5 and 6 as Valgrind 3.23 to
// 3.26 write them.
package valgrind
