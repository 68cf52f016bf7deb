//go:build !linux

package written

import (
	"os"
	"syscall"
)

// Unread returns nil: how much of a pipe was read is not known here.
func Unread(*os.File) func() (int64, bool) { return nil }

// UnreadOf returns nil, like Unread.
func UnreadOf(syscall.Conn) func() (int64, bool) { return nil }

// AwaitClosed does nothing: it is noticed at the next line.
func AwaitClosed(*os.File, func()) {}

// AwaitBroken returns at once: a peer that sends nothing more counts as gone here.
func AwaitBroken(syscall.Conn) {}
