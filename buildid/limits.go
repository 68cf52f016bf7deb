package buildid

import "time"

// The limits of this package. None is reached by what people have.
const (
	minPathID   = 2        // bytes of an ID that is looked up by path: the first is the folder, the others the file
	maxPath     = 4096     // bytes of a name that is tried as a path: PATH_MAX of Linux
	maxFileName = 255      // bytes of the last part of a path: NAME_MAX of Linux
	maxSummed   = 16 << 30 // bytes of a file whose checksum is taken: some seconds' work
	sumChunk    = 1 << 20  // bytes summed up between two looks at the context

	maxIDsBytes = 64 << 20 // bytes of an ids.txt that are read; one of a whole Fuchsia build has 10 MiB
	maxIDsLines = 1 << 20  // lines of an ids.txt that are kept: some 100 MiB

	maxCandidates = 64 // files of one build ID that are compared with each other

	walkers     = 16              // goroutines that look at folders and read notes; a cold disk answers that many at once, a warm one is done sooner
	walkChunk   = 256             // files that one of them looks at before it takes another task
	maxIndexed  = 1000000         // files and folders looked at below all paths together: some 200 MB of index
	maxFaults   = 16              // Attempts about what could not be read, kept for --explain
	headSize    = 4096            // bytes read of a file at once, in which headers and notes mostly lie
	young       = 2 * time.Second // within which a file may change without that its time does: what FAT's clock can tell
	recheckMin  = time.Second     // between two looks for files that came; symbolize asks again for a missing one after 2 s
	recheckPart = 50              // of the time, at most one part of this many goes into such looks

	maxRemembered  = 256 << 20        // bytes of an index on disk
	rememberedMax  = 128              // indexes on disk; the oldest go first
	rememberAgain  = 30 * time.Second // between two times that an index is written
	rememberedIdle = 24 * time.Hour   // after which one that is used is marked as used again

	maxZipMembers    = 65536     // of an archive
	maxZipDirectory  = 8 << 20   // bytes read to learn what is in an archive
	maxZipMember     = 4 << 30   // bytes of a member, inflated
	maxZipRatio      = 1000      // inflated bytes of a member for one deflated: deflate itself ends at 1,032
	zipRatioFrom     = 16 << 20  // inflated bytes from which on the ratio counts
	zipHead          = 1 << 20   // bytes at the beginning of a deflated member in which its note is looked for
	maxZipHeads      = 512 << 20 // bytes of an archive's members that are inflated to find their notes
	maxUnpacked      = 16        // members of archives that stay unpacked while nobody uses them
	maxUnpackedBytes = 2 << 30   // of those
)
