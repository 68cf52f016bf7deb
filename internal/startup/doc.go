// Package startup prepares the process of a command: it limits the heap, tunes the garbage
// collector, checks that the file descriptors that every run needs are free, and returns the
// version of the build.
package startup
