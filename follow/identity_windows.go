package follow

import (
	"io/fs"
	"os"
	"syscall"
)

// identify returns which file f is.
func identify(f *os.File, _ fs.FileInfo) fileID {
	var d syscall.ByHandleFileInformation
	if f == nil || syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &d) != nil {
		return fileID{}
	}
	return fileID{uint64(d.VolumeSerialNumber), uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)}
}

// links returns how many names the file has, as far as it matters: one that is
// open keeps its name.
func links(fs.FileInfo) int { return 1 }

// lookAt returns what stands behind path, symbolic links resolved.
func lookAt(path string) (fileID, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileID{}, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileID{}, nil, err
	}
	return identify(f, info), info, nil
}

const openFlags = os.O_RDONLY

const stateFlags = os.O_RDWR | os.O_APPEND

// planted reports false: files for all are in no folder that a state file would be kept in.
func planted(string, fs.FileInfo) bool { return false }

// locks says that a file can be locked: here one that is open cannot be renamed.
const locks = false

func lockFile(*os.File) bool { return true }

// descriptorLimit returns how many files a process may have open.
func descriptorLimit() int64 { return manyDescriptors }
