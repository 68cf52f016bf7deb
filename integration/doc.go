// Package integration tests the command as it is built, together with real parts: sanitizers,
// compilers, LLVM's tools, pipes. It has tests only, for Linux.
//
// A test whose part is missing is skipped. If CI=true, it fails instead. TEST_LONG=1 runs the
// full sizes.
package integration
