// Package debuginfod fetches debug files by build ID from debuginfod servers, into the on-disk cache that it shares with
// elfutils' client.
//
// A [Client] is a finder of files for the symbolizer: what it returns was asked of the servers under the file's build ID alone,
// and the note in the file holds that ID, or nobody sees the file. (A build ID names a file and does not authenticate it: a
// server can forge what it likes under the right ID. Ask servers that are trusted, over https.) A [Cache] finds what was fetched
// earlier, by this client or by elfutils', without any network.
//
// The rules of the cache, which are elfutils':
//
//   - Its place is that of [CacheDir]. A file is CACHE/<hex ID>/debuginfo or CACHE/<hex ID>/executable, mode 0400 in a
//     directory of mode 0700. It is written without a name (or, where the file system has no such files, under a temporary one beside),
//     verified, synced and given its name: what has its final name is whole.
//   - An empty file is a miss: the servers said that they have no such file. It holds for cache_miss_s seconds after it was made.
//   - The files cache_clean_interval_s, max_unused_age_s and cache_miss_s in CACHE hold a number of seconds each, and are made with
//     elfutils' defaults when they are missing. Once in each clean interval files that nobody read for max_unused_age_s are
//     removed; the time of the last cleaning is the modification time of cache_clean_interval_s.
//
// And those that it adds:
//
//   - Every file is verified again when it is opened. Symbolic links, devices, files of other users and directories that others
//     can write to are not used. An ELF file of another build is removed and fetched again.
//   - One process at a time fetches a file (on Linux, by a lock on .symfilter-lock); the others wait for it.
//   - Where the cache cannot be written (it is full, read-only or refused), the file is kept without a name in the system's
//     directory of temporary files for as long as it is open.
//   - At most 10,000 misses are kept; the oldest are removed first, and directories that get empty by that.
//   - Temporary files that a killed process left are removed after [staleTemp].
//   - Sections are neither kept nor taken from the cache: it does not say which server a section is from.
package debuginfod

import "time"

// The limits. Those with a variable of the environment are [Options] too.
const (
	connectTimeout = 10 * time.Second // to reach a server, and again for the TLS handshake: more is one that is down
	defaultTimeout = 90 * time.Second // DEBUGINFOD_TIMEOUT: elfutils'; servers unpack archives before they answer
	minProgress    = 100 << 10        // bytes that a server must send in each Timeout: elfutils'
	defaultMaxTime = 10 * time.Minute // DEBUGINFOD_MAXTIME, for one file from all servers: 1 GiB at 2 MiB/s
	defaultMaxSize = 4 << 30          // DEBUGINFOD_MAXSIZE, bytes: the debug information of a browser fits
	defaultRetries = 2                // DEBUGINFOD_RETRY_LIMIT: elfutils'

	maxRedirects  = 3         // of one request: a mirror and its store
	maxHeader     = 64 << 10  // bytes of an answer's header
	maxHeaders    = 1 << 20   // bytes of DEBUGINFOD_HEADERS_FILE
	maxControl    = 64        // bytes of a control file of the cache: it holds a number
	maxURLs       = 64        // servers
	maxURLsFile   = 64 << 10  // bytes of a file in /etc/debuginfod
	maxRatio      = 1000      // bytes out of one compressed byte, beyond freeInflate
	freeInflate   = 16 << 20  // bytes that may come out of any compressed answer
	maxSection    = 256 << 20 // bytes of one section: it is kept in memory
	maxVerdicts   = 4096      // remembered answers of one server
	maxMisses     = 10000     // misses remembered on disk, each 1 or 2 inodes: the oldest go first
	keptMisses    = 8000      // of them, after they were counted and found to be more
	missLook      = 1000      // misses of this process between two counts
	newBurst      = 1000      // new build IDs asked for at once: three big programs, with all their libraries
	newPerSecond  = 20        // and a second after that
	newKnown      = 4096      // IDs remembered as not new
	maxHeld       = 65536     // IDs counted that were not asked for: a person reads the number
	maxFlights    = 16        // files fetched at a time; more wait for their turn
	maxCacheFiles = 1 << 20   // files of the cache looked at in one cleaning
	maxProblems   = 20        // told of a cache: a person reads them

	keepFree     = 20      // 1/20 of a file system stays free for others,
	keepFreeMost = 1 << 30 // but no more bytes than these
	roomEvery    = 1 << 20 // bytes written between two looks at what is free

	drainFor      = 250 * time.Millisecond // for the rest of an answer that is none: a new connection takes no longer
	retryFirst    = 250 * time.Millisecond // before the first retry, jittered, then doubling
	retryMost     = 5 * time.Second        // between retries
	retryAfterMax = 10 * time.Second       // of a Retry-After that is waited for; a longer one closes the server until then

	breakAfter = 5                // failures in a row after which a server is left alone
	breakFirst = 30 * time.Second // for how long at first; doubled each time it fails again
	breakMost  = time.Hour

	rememberWrong = 24 * time.Hour // how long a server that sent the wrong file is not asked for it again
	staleTemp     = time.Hour      // a temporary file that was not written to for so long has no writer
	progressEvery = 100 * time.Millisecond
	lockPoll      = 20 * time.Millisecond // between looks whether another process has finished
	atimeGrain    = time.Hour             // an access time that is younger is not written again
)
