// Package child starts a program whose output this process reads and passes on.
//
// The program keeps its standard input, process group, terminal and environment. Only its standard
// output and error are replaced: by pipes, or if they were a terminal, by pseudo-terminals of the
// same size. A pseudo-terminal is for output alone: keys, job control and /dev/tty remain with the
// real terminal. If standard output and error of this process are one file, the program gets one
// file for both, which keeps the order of their text.
package child
