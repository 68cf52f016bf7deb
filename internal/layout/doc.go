// Package layout formats lines of output. A [Line] has text of the log, in which answers (resolved
// names and locations) replace markup elements and raw frames, each part in its colour. Output for
// people also has shorter names and paths, and source lines. A [Display] breaks wide lines, and
// folds runs of system frames. Output for programs has none of these.
package layout
