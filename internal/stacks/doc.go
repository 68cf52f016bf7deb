// Package stacks holds weighted stacks, and writes them in the forms that viewers of profiles read.
//
// A [Profile] has samples: stacks of locations with values. [Profile.WritePprof],
// [Profile.WriteFolded] and [Profile.WriteSpeedscope] print it; equal profiles give equal bytes.
// [Decompose] makes stacks from a call graph, which has only the costs of places and of calls.
// [Difference] subtracts the stacks of one profile from another profile's.
package stacks
