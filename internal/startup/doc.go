// Package startup prepares the process of a command: it sets how much memory the garbage collector
// leaves, checks that the descriptors that any run needs are free, and returns the version that the
// command was built as.
package startup
