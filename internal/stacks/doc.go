// Package stacks holds weighted stacks, and writes them in the forms that viewers of profiles read.
//
// A [Profile] has samples: stacks of locations with values. [Profile.WritePprof] and
// [Profile.WriteFolded] print it; equal profiles give equal bytes.
package stacks
