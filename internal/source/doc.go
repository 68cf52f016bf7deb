// Package source finds the text of source lines: in debug information, in folders that the operator
// named, and on debuginfod servers.
//
// A [Finder] looks for a file in that order, and keeps the texts it found under a budget. A text
// whose checksum differs from the one in debug information is not used. clang writes checksums; GCC
// 12 does not. Without a checksum the text is used unverified. A file that ends before a line of
// the debug information is another version, and is not used for that line.
//
// # What is opened
//
// Debug information and logs are hostile: they may name any file. A file is opened only below a
// root that the operator named, by an [os.Root]: neither ".." nor a symbolic link leads out of the
// root. Only regular files are opened, no FIFOs and no devices. A file of more than 16 MiB is not
// used.
//
// Prefix maps are applied to a path before it is matched with the roots. An absolute path must be
// below the path of a root, as named or with links resolved. A relative path is first tried from
// the current folder, as an absolute path, and then from each root. Nothing is guessed from the
// last parts of a path.
package source

import "time"

const (
	maxFile       = 16 << 20 // bytes of a source file: generated files of 10 MB exist
	maxKept       = 48 << 20 // bytes of all files that a Finder keeps: about 2,000 usual ones, or three of the largest
	maxPath       = 64 << 10 // bytes of a path, as in debug information
	entryCost     = 512      // bytes of a kept file or miss, without its path and text
	linesPerStart = 64       // lines per recorded offset in a text; 64 lines take 2 µs to search
	maxNotices    = 16       // messages of each kind: people read them
	maxFetches    = 4        // requests at a time
	maxMisses     = 8        // misses in a row after which no more files of the build are requested
	maxBuilds     = 4096     // builds whose misses are counted

	missFor    = 10 * time.Second       // time until a file that was not found is looked for again
	soon       = 100 * time.Millisecond // the same if the file, or its debug file, is being fetched
	noBuildFor = 10 * time.Minute       // time until servers without sources of a build are asked again
)
