// Package startup is what the commands set up for their process: how much memory the garbage
// collector leaves, the descriptors that they need, and the version that they were built as.
package startup
