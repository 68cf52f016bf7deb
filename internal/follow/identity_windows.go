package follow

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/symfilter/symfilter/internal/lineage"
)

func identify(f *os.File, _ fs.FileInfo) lineage.ID {
	var d syscall.ByHandleFileInformation
	if f == nil || syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &d) != nil {
		return lineage.ID{}
	}
	return lineage.ID{Dev: uint64(d.VolumeSerialNumber), Ino: uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)}
}

// links returns 1: an open file cannot lose its name on this system.
func links(fs.FileInfo) int { return 1 }

// lookAt returns the ID and the state of the file at path, with symbolic links resolved.
func lookAt(path string) (lineage.ID, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return lineage.ID{}, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return lineage.ID{}, nil, err
	}
	return identify(f, info), info, nil
}

const openFlags = os.O_RDONLY

const stateFlags = os.O_RDWR | os.O_APPEND

// planted returns false: state files are not kept in folders in which everyone may create files.
func planted(string, fs.FileInfo) bool { return false }

// an open file cannot be renamed on this system
const locks = false

func lockFile(*os.File) bool { return true }

// descriptorLimit returns manyDescriptors: this system has no lower limit.
func descriptorLimit() int64 { return manyDescriptors }
