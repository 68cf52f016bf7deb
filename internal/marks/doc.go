// Package marks finds, in blocks of a log, marks: the three bytes with which an element of markup
// or a frame of a raw backtrace may begin. It reads every byte of every log, and nearly all lines
// have no mark, so its speed decides the speed on most logs.
package marks
