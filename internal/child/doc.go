// Package child starts a program whose output this process reads and passes on.
//
// The program keeps what it would have without this process in between: its standard input, its
// process group, its terminal, its environment. Only standard output and error are pipes, or, if
// they were a terminal, pseudo-terminals of its size, which are for output alone: they do not
// control the program, so that keys, job control and /dev/tty are those of the real terminal. If
// both are the same file, so are they for the program, and the order of their text is kept.
package child
