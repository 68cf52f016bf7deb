// Package debuginfod fetches debug files by build ID from debuginfod servers. It shares its on-disk
// cache with elfutils' client.
//
// A [Client] is a finder of files for the symbolizer. It asks servers for a file by build ID alone,
// and returns a file only if the note in it holds that ID. A server can send any content under the
// right ID: ask only trusted servers, over https. A client that is Offline uses no network. It
// finds files in the cache.
//
// Rules of the cache, as in elfutils:
//
//   - The cache is in the directory of elfutils' client, unless [Options] names another. A file is
//     CACHE/<hex ID>/debuginfo or CACHE/<hex ID>/executable, mode 0400 in a directory of mode 0700.
//     A new file has no name, or a temporary one, until it is verified and synced. So a file with
//     its final name is complete.
//   - An empty file is a miss: the servers have no such file. It is believed for cache_miss_s
//     seconds after it was made. elfutils' client believes it even if its servers have changed.
//   - The files cache_clean_interval_s, max_unused_age_s and cache_miss_s in CACHE hold a number of
//     seconds each. Missing ones are made with elfutils' defaults. Once in each clean interval,
//     files that were not read for max_unused_age_s are removed. The modification time of
//     cache_clean_interval_s is the time of the last cleaning.
//
// Rules that this package adds:
//
//   - A record beside a miss holds the servers without the file, with the times of their answers.
//     Other servers are asked. A miss by elfutils' client has no record, and is believed for every
//     server. With [Options] AskAgain no miss is believed.
//   - Every file is verified again when it is opened. Symbolic links, devices, files of other users
//     and directories that others can write to are not used. An ELF file of another build is
//     removed and fetched again.
//   - One process at a time fetches a file (on Linux, by a lock on .symfilter-lock); the others
//     wait for it.
//   - If the cache cannot be written, for example because it is full, a file is kept in the
//     system's directory of temporary files for as long as it is open.
//   - At most 10,000 misses are kept. The oldest are removed first, with directories that become
//     empty.
//   - Temporary files of killed processes are removed after an hour.
//   - Source files are kept under the names of elfutils 0.192. A source file has no build ID, so it
//     is not verified. Misses of source files are not recorded.
//   - Sections are neither kept in the cache nor taken from it: the cache does not record the
//     server of a section.
package debuginfod

import "time"

// Limits. [Options] overrides a limit if its comment names an environment variable.
const (
	// time to connect to a server, and again for the TLS handshake; a slower server counts as down
	connectTimeout = 10 * time.Second
	// DEBUGINFOD_TIMEOUT: as in elfutils; servers unpack archives before they answer
	defaultTimeout = 90 * time.Second
	minProgress    = 100 << 10 // bytes that a server must send in each Timeout: as in elfutils
	// DEBUGINFOD_MAXTIME, for one file from all servers: 1 GiB at 2 MiB/s
	defaultMaxTime = 10 * time.Minute
	// DEBUGINFOD_MAXSIZE, bytes: the debug information of a browser fits
	defaultMaxSize = 4 << 30
	defaultRetries = 2 // DEBUGINFOD_RETRY_LIMIT: as in elfutils

	maxRedirects = 3         // per request: enough for a mirror and its store
	maxHeader    = 64 << 10  // bytes of an answer's header
	packedShare  = 64        // gzip may add 1/64 of a file's size: stored blocks, members
	maxHeaders   = 1 << 20   // bytes of the file that DEBUGINFOD_HEADERS_FILE names
	maxControl   = 64        // bytes of a control file of the cache: it holds a number
	maxURLs      = 64        // servers
	maxURLsFile  = 64 << 10  // bytes of one file in /etc/debuginfod
	maxRatio     = 1000      // inflated bytes for each compressed byte, beyond freeInflate
	freeInflate  = 16 << 20  // inflated bytes that any compressed answer may have
	maxSection   = 256 << 20 // bytes of one section: it is kept in memory
	maxVerdicts  = 4096      // answers remembered for each server
	// misses on disk, of 1 or 2 inodes each; beyond that, the oldest are removed
	maxMisses  = 10000
	keptMisses = 8000 // misses left after a removal
	missLook   = 1000 // misses written by this process between two counts of the misses on disk
	// new build IDs requested at once: enough for three big programs with all their libraries
	newBurst      = 1000
	newPerSecond  = 20      // new build IDs requested in each second after that
	newKnown      = 4096    // IDs remembered as not new
	maxHeld       = 65536   // refused IDs that are counted: the number is only shown
	maxFlights    = 16      // files fetched at a time; more wait for their turn
	maxCacheFiles = 1 << 20 // files of the cache examined in one cleaning
	maxProblems   = 20      // problems of one cache that are reported: people read them

	keepFree     = 20      // 1/20 of a file system stays free for other programs,
	keepFreeMost = 1 << 30 // but at most this many bytes
	roomEvery    = 1 << 20 // bytes written between two checks of the free space

	// maximum time to read the rest of an error answer, so that the connection can be reused; a new
	// connection takes about as long
	drainFor   = 250 * time.Millisecond
	retryFirst = 250 * time.Millisecond // before the first retry, jittered, then doubling
	retryMost  = 5 * time.Second        // between retries
	// longest Retry-After that a request waits for; a longer one pauses all requests to the server
	retryAfterMax = 10 * time.Second

	breakAfter = 5                // failures in a row after which a server is not asked for a while
	breakFirst = 30 * time.Second // first pause; doubled each time the server fails again
	breakMost  = time.Hour

	// time until a server that sent the wrong file is asked for it again
	rememberWrong = 24 * time.Hour
	// a temporary file that was not written for this time has no writer
	staleTemp     = time.Hour
	progressEvery = 100 * time.Millisecond
	lockPoll      = 20 * time.Millisecond // interval between two attempts to take the lock
	// minimum age of a file's access time before it is written again
	atimeGrain = time.Hour
)
