// Package layout formats a line of output ([Line]): text of the log, with answers in place of
// its elements and frames, each part in its colour. Output for people also has shorter names
// and paths, and source lines. A [Display] breaks its lines at suitable places, and folds runs
// of system frames. Programs get none of these.
package layout
