package buildid

import "time"

// Limits that real installations do not reach, and other constants of the finders.
const (
	// minimum bytes of an ID in a tree: the first byte names the folder, the others the file
	minPathID   = 2
	maxPath     = 4096     // bytes of a name that is tried as a path: PATH_MAX of Linux
	maxFileName = 255      // bytes of the last part of a path: NAME_MAX of Linux
	maxSummed   = 16 << 30 // bytes of a file whose checksum is computed, within some seconds
	sumChunk    = 1 << 20  // bytes summed between two checks of the context

	// bytes read of an ids.txt; a whole Fuchsia build has an ids.txt of 10 MiB
	maxIDsBytes = 64 << 20
	maxIDsLines = 1 << 20 // lines of an ids.txt that are kept: about 100 MiB

	maxCandidates = 64 // files of one build ID that are compared with each other

	// goroutines that list folders and read notes: enough to keep a cold disk busy
	walkers   = 16
	walkChunk = 256 // files that a walker examines before it takes another task
	// files and folders examined below all paths together; their index takes about 200 MB
	maxIndexed = 1000000
	maxFaults  = 16 // kept Attempts about unreadable files and folders, for --explain
	// bytes of the first read of a file, which usually has the headers and notes
	headSize = 4096
	// a file younger than this may change without a new modification time: FAT has steps of 2 s
	young = 2 * time.Second
	// minimum time between two searches for new files; symbolize retries a missing file every 2 s
	recheckMin  = time.Second
	recheckPart = 50 // searches for new files take at most 1/50 of the time

	maxRemembered = 256 << 20 // bytes of an index on disk
	// indexes on disk; beyond that, the least recently used are removed
	rememberedMax = 128
	rememberAgain = 30 * time.Second // minimum time between two writes of an index
	// age after which the modification time of an index in use is renewed
	rememberedIdle = 24 * time.Hour

	maxZipMembers   = 65536   // members of an archive
	maxZipDirectory = 8 << 20 // bytes read of an archive's directory
	maxZipMember    = 4 << 30 // bytes of a member, inflated
	// inflated bytes of a member per deflated byte; deflate itself reaches 1,032
	maxZipRatio  = 1000
	zipRatioFrom = 16 << 20 // inflated bytes of a member above which the ratio is checked
	// bytes of a deflated member that are searched for its note
	zipHead = 1 << 20
	// total bytes inflated from one archive's members to find their notes
	maxZipHeads      = 512 << 20
	maxUnpacked      = 16      // unpacked members of archives kept while not in use
	maxUnpackedBytes = 2 << 30 // total bytes of unused members
)
