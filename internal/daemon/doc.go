// Package daemon runs the pipelines of a configuration. Each reads the lines of one input, filters
// them, and writes them to one output.
//
//	c, err := daemon.Parse(file)
//	…
//	d, err := daemon.New(c, daemon.Options{…})
//	…
//	err = d.Run(ctx)
//
// An input (files, standard input, sockets, HTTP, a journal) splits its bytes into whole lines. It
// gives the lines of each stream, such as a file or a connection, to a session. A session has a
// filter, except while the stream is idle. It uses the stage of its pipeline: the options of
// filters, and the output. A reload gives the continuing sessions a new stage.
//
// Nothing is queued: a session's Write returns only when the output has the lines, so a blocked
// output stops the reading. Lines are acknowledged to their sender after that.
package daemon
