package main

import (
	"io"
	"sync"
)

// A statusLine is the last line of a terminal, with the current work. It is erased while other
// lines are printed. A statusLine is safe for concurrent use.
type statusLine struct {
	mu    sync.Mutex
	w     io.Writer // the terminal; nil: nothing is shown
	text  string
	shown bool
	inner bool // the last printed text has no line end
}

// set shows text. An empty text clears the line.
func (s *statusLine) set(text string) {
	if s.w == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == text {
		return
	}
	s.erase()
	s.text = text
	s.draw()
}

// around erases the status line while it calls print, which prints p to the same terminal. If
// message is set, p begins on a new line, even after an unfinished line of the log, such as a
// prompt.
func (s *statusLine) around(p []byte, message bool, print func() (int, error)) (int, error) {
	if s.w == nil {
		return print()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if message && s.inner {
		io.WriteString(s.w, "\n")
	}
	n, err := print()
	if n > 0 {
		s.inner = p[n-1] != '\n'
	}
	s.draw()
	return n, err
}

// draw shows the text, unless it is empty or the cursor is within a line. The text is not wrapped,
// since erase clears only one line. s.mu is held.
func (s *statusLine) draw() {
	if s.text == "" || s.inner {
		return
	}
	io.WriteString(s.w, "\x1b[?7l"+s.text+"\x1b[?7h")
	s.shown = true
}

// erase clears the line. s.mu is held.
func (s *statusLine) erase() {
	if s.shown {
		io.WriteString(s.w, "\r\x1b[K")
		s.shown = false
	}
}

// A besideStatus writes text to a terminal with a status line. The text is the log if log is set,
// otherwise messages.
type besideStatus struct {
	io.Writer
	status *statusLine
	log    bool
}

func (b besideStatus) Write(p []byte) (int, error) {
	return b.status.around(p, !b.log, func() (int, error) { return b.Writer.Write(p) })
}
