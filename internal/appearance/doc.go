// Package appearance has what people see of frames that programs do not: shorter names and paths,
// lines that are broken where they fit ([Lines]), runs of frames of the system as one line, and
// source lines.
package appearance
