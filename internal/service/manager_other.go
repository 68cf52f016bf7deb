//go:build !linux

package service

import (
	"os"
	"time"
)

// This system has no systemd.

func monotonic() time.Duration { return 0 }

func isJournal(string, *os.File) bool { return false }

// Inherited returns no sockets.
func Inherited() (*Sockets, error) { return &Sockets{}, nil }
