//go:build linux

package integration

import "golang.org/x/sys/unix"

func inPipe(fd uintptr) int {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	if err != nil {
		return -1
	}
	return n
}
