// Package valgrind reads the XML reports of Valgrind's tools, and names the frames of stripped
// programs.
//
// A [Reader] turns bytes into records: an error, a message, the start of a process. It is not an
// XML parser, since a quarter of real reports are not well-formed. For example, forked children
// write to one file, a process is killed, or a thread's name is not escaped. The Reader loses no
// content of such reports. [NewMarkup] renders records as symbolizer markup, text that reads like
// Valgrind's own report. [NewReport] prints them as JSON Lines (report.schema.json).
//
// A report has the file and the address of each frame, but not where the file was loaded. The load
// bias is taken from a map, or inferred. An inferred bias must put every address of the file into
// the file's code. It must also agree with the facts in the report and the file. If several biases
// fit, the frames of the file stay unresolved; [Options] has the remedies.
//
// The formats are protocols 1 to 4 as Valgrind's xml-output.txt and xml-output-protocol4.txt
// describe them. Protocols 5 and 6 are read as Valgrind 3.23 to 3.26 write them.
package valgrind
