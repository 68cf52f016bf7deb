//go:build !linux

package service

import (
	"os"
	"time"
)

// There is no systemd on this system.

func monotonic() time.Duration { return 0 }

func isJournal(string, *os.File) bool { return false }

// Inherited returns no sockets.
func Inherited() (*Sockets, error) { return &Sockets{}, nil }
