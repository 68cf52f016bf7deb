// Package marks finds the marks in blocks of a log: three bytes with which an element of markup may
// begin, or near which a frame of a raw backtrace may be. It reads every byte of every log, and
// nearly all lines have no mark: its speed decides the speed on most logs.
package marks
