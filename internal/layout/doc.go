// Package layout makes the text of a line of output: text of the log, and in place of its elements
// and frames the answers, each part in its colour, with the places at which the line may be broken.
package layout
