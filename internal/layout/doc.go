// Package layout is how a line of output looks: text of the log, and in place of its elements and
// frames the answers, each part in its colour ([Line]). For people it has what programs do not
// read: shorter names and paths, lines that are broken where they fit and runs of frames of the
// system as one line ([Display]), and source lines.
package layout
