// Package daemon runs the pipelines of a configuration. Each pipeline reads the lines of one input,
// filters them, and writes them to one output.
//
//	c, err := daemon.Parse(file)
//	…
//	d, err := daemon.New(c, daemon.Options{…})
//	…
//	err = d.Run(ctx)
//
// An input is files, standard input, sockets, HTTP or a journal. The input splits its bytes into
// whole lines, and gives the lines of each stream to a session. A stream is a file or a connection,
// for example. A session has a filter, except while the stream is idle. Sessions use the stage of
// their pipeline: the options of filters, and the output. A reload replaces the stage.
//
// Lines are never queued. A session's Write returns only when the output has accepted the lines. So
// a blocked output stops the reading, and a sender's lines are acknowledged only after the write.
package daemon
