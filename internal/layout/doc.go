// Package layout formats a line of output: text of the log, with answers in place of its elements
// and frames, each part in its colour ([Line]). Output for people also has shorter names and paths,
// line breaks at suitable places and runs of system frames on one line ([Display]), and source
// lines. Programs get none of these.
package layout
