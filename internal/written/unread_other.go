//go:build !linux

package written

import (
	"os"
	"syscall"
)

// Unread returns nil: this system does not count unread bytes.
func Unread(*os.File) func() (int64, bool) { return nil }

// UnreadOf returns nil, like Unread.
func UnreadOf(syscall.Conn) func() (int64, bool) { return nil }

// AwaitClosed does nothing: the next write fails.
func AwaitClosed(*os.File, func()) {}

// AwaitBroken returns at once: on this system, a peer that ends its sending counts as gone.
func AwaitBroken(syscall.Conn) {}
