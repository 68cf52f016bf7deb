// Package startup prepares the process of a command. It limits the heap, tunes the garbage
// collector, and checks that enough file descriptors are free. It also returns the version of the
// build.
package startup
