package follow

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// skipHole returns the first offset from off at which f, a file of size bytes, has data. It returns
// size if only a hole follows, and off if the file system does not report holes.
func skipHole(f *os.File, off, size int64) int64 {
	at := off
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) {
			switch n, err := unix.Seek(int(fd), off, unix.SEEK_DATA); {
			case err == nil:
				at = min(n, size)
			case err == unix.ENXIO: // only a hole
				at = max(off, size)
			}
		})
	}
	return at
}

// eventless lists the file systems without events for changes by other machines or by a server.
var eventless = [...]int64{
	unix.NFS_SUPER_MAGIC,
	unix.SMB_SUPER_MAGIC,
	unix.SMB2_SUPER_MAGIC,
	unix.CIFS_SUPER_MAGIC,
	unix.FUSE_SUPER_MAGIC,
	unix.V9FS_MAGIC,
	unix.AFS_FS_MAGIC,
	unix.CEPH_SUPER_MAGIC,
	unix.CODA_SUPER_MAGIC,
	unix.NCP_SUPER_MAGIC,
	unix.OCFS2_SUPER_MAGIC,
	0x0BD00BD0, // Lustre
	0x47504653, // GPFS
	0x01161970, // GFS2
	0x19830326, // BeeGFS
	0x786f4256, // folders shared by VirtualBox
	0x6a656a63, // folders shared with a virtual machine on a Mac
}

// hasEvents reports whether the system reports changes in a folder.
func hasEvents(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) != nil || !slices.Contains(eventless[:], int64(uint32(s.Type)))
}
