// Package marks finds, in blocks of a log, the three bytes with which an element of markup or a
// frame of a raw backtrace may begin: it reads every byte of every log, and nearly all lines have
// no mark.
package marks
