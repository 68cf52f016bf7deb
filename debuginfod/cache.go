package debuginfod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// Control files of the cache, with elfutils' names and defaults. Only symfilter uses lockName.
const (
	cleanIntervalFile = "cache_clean_interval_s"
	maxUnusedFile     = "max_unused_age_s"
	missFile          = "cache_miss_s"
	lockName          = ".symfilter-lock"

	defaultCleanInterval = 24 * time.Hour
	defaultMaxUnused     = 7 * 24 * time.Hour
	defaultMiss          = 10 * time.Minute
)

// A key names one file of the cache.
type key struct {
	id     buildid.ID
	kind   buildid.Kind // Debug or Executable
	source string       // path of a source file; empty for other files

	// X-Forwarded-For of a search on behalf of another server, otherwise empty. Such a search has
	// its own flight: see [WithForwarded].
	forwarded string
}

// word returns the file's name in the directory of its build ID.
func (k key) word() string {
	switch {
	case k.source != "":
		return sourceName(k.source)
	case k.kind == buildid.Executable:
		return "executable"
	}
	return "debuginfo"
}

func (k key) path() string { return k.id.String() + "/" + k.word() }

// url returns the file's path on a server, not encoded.
func (k key) url() string {
	if k.source != "" {
		return "/buildid/" + k.id.String() + "/source" + k.source
	}
	return "/buildid/" + k.path()
}

// magic returns the file's first bytes. A source file has none: it may be any text.
func (k key) magic() string {
	if k.source != "" {
		return ""
	}
	return elfMagic
}

// verify fails unless f, of size bytes, is a whole ELF file with k's build ID. A source file has no
// build ID and may have any content.
func (k key) verify(f *os.File, size int64) error {
	if k.source != "" {
		return nil
	}
	return verify(f, size, k.id)
}

// keys returns the files that satisfy q, best first.
func keys(q buildid.Query) []key {
	switch q.Kind {
	case buildid.Executable:
		return []key{{id: q.ID, kind: buildid.Executable}}
	case buildid.Alt:
		return []key{{id: q.ID, kind: buildid.Debug}}
	}
	if q.Better {
		return []key{{id: q.ID, kind: buildid.Debug}}
	}
	return []key{{id: q.ID, kind: buildid.Debug}, {id: q.ID, kind: buildid.Executable}}
}

// A diskCache holds files from earlier fetches, by this client or by other clients with elfutils'
// layout. It makes no request. It is safe for concurrent use.
type diskCache struct {
	dir    string
	misses missCount
}

func newCache(dir string) *diskCache {
	if dir != "" {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
	}
	return &diskCache{dir: dir, misses: missCount{limits: missLimits{maxMisses, keptMisses, missLook}}}
}

// find returns the verified file for q; the caller closes it. It calls note, which may be nil, for
// each place without a usable file. The error wraps [fs.ErrNotExist], unless ctx is done or the
// system has a temporary error. find changes only access times.
func (c *diskCache) find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	if note == nil {
		note = func(buildid.Attempt) {}
	}
	root, err := c.open()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			note(buildid.Attempt{Where: c.where(), Reason: "no cache"})
		} else {
			note(buildid.Attempt{Where: c.where(), Reason: "not used: " + lastError(err).Error()})
		}
		return nil, c.miss(q, err)
	}
	defer root.Close()
	var first error
	for _, k := range keys(q) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("build ID %s: %s: %w", q.ID, c.where(), err)
		}
		f, l := c.look(root, k)
		if f != nil {
			return f, nil
		}
		note(buildid.Attempt{Where: filepath.Join(c.dir, k.path()), Reason: l.reason})
		if first == nil {
			first = l.passing
		}
	}
	return nil, c.miss(q, first)
}

func (c *diskCache) where() string {
	if c.dir == "" {
		return "debuginfod cache"
	}
	return c.dir
}

// miss returns the error of a search without a file. It wraps fs.ErrNotExist, unless err is
// temporary: the file may then exist.
func (c *diskCache) miss(q buildid.Query, err error) error {
	if err = passing(err); err != nil {
		return fmt.Errorf("build ID %s: %s: %w", q.ID, c.where(), err)
	}
	return fmt.Errorf("build ID %s: %s: %w", q.ID, c.where(), fs.ErrNotExist)
}

// passing returns err if it is temporary, such as too many open files, or due to a failing disk.
// Otherwise it returns nil.
func passing(err error) error {
	switch number, _ := errors.AsType[syscall.Errno](err); number {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EINTR, syscall.EAGAIN:
		return err
	}
	return nil
}

// errNoCache means that the environment names neither a cache nor a home directory.
var errNoCache = errors.New("no cache directory: set DEBUGINFOD_CACHE_PATH or HOME")

var errNoDirectory = errors.New("not a directory")

// open opens the cache's directory. The directory must belong to the user or root, and only its
// owner may write to it. That excludes a directory that elfutils makes with umask 002. Files and
// directories in the cache are checked when they are used.
func (c *diskCache) open() (*os.Root, error) {
	if c.dir == "" {
		return nil, errNoCache
	}
	if info, err := os.Stat(c.dir); err == nil && !info.IsDir() {
		return nil, errNoDirectory // OpenRoot would wait for the other end of a FIFO
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = checkDir(info)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// check returns the reason why an existing cache is not used, and nil if there is no cache. It
// checks the directory only, not its contents.
func (c *diskCache) check() error {
	root, err := c.open()
	switch {
	case err == nil:
		return root.Close()
	case errors.Is(err, errNoCache) || errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return lastError(err)
}

func checkDir(info fs.FileInfo) error {
	if !info.IsDir() {
		return errNoDirectory
	}
	if err := checkOwner(info); err != nil {
		return err
	}
	return checkMode(info)
}

// A look is the reason why the cache has no usable file.
type look struct {
	reason string
	miss   bool          // the cache has an empty file that has not expired
	age    time.Duration // age of the empty file; set for expired files, too
	// servers without the file; nil if another program has written the miss
	by      []serverMiss
	missFor time.Duration // time for which the miss is believed
	wrong   bool          // a regular file with the wrong content
	// a temporary error, after which the file may exist; nil otherwise
	passing error
}

// look opens k's file, and verifies it through the same descriptor. If it returns no file, the look
// holds the reason.
func (c *diskCache) look(root *os.Root, k key) (*buildid.File, look) {
	bad := func(err error) (*buildid.File, look) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, look{reason: "no such file"}
		}
		return nil, look{reason: "not used: " + lastError(err).Error(), passing: passing(err)}
	}
	dir, err := root.Lstat(k.id.String())
	if err == nil {
		err = checkDir(dir)
	}
	if err != nil {
		return bad(err)
	}
	f, info, err := openRegular(root, k.path(), os.O_RDONLY)
	if err != nil {
		return bad(err)
	}
	if info.Size() == 0 {
		f.Close()
		l := look{age: max(time.Since(info.ModTime()), 0), missFor: c.control(root, missFile, defaultMiss, false)}
		l.miss = l.age <= l.missFor
		l.by = missedBy(root, k, info.ModTime())
		l.reason = l.missReason()
		return nil, l
	}
	if err := checkMode(info); err != nil {
		f.Close()
		return bad(err)
	}
	if err := k.verify(f, info.Size()); err != nil {
		f.Close()
		failing := passing(err)
		return nil, look{reason: "not used: " + err.Error(), wrong: failing == nil, passing: failing}
	}
	if now := time.Now(); now.Sub(accessed(info)) > atimeGrain {
		// reading changes no access time on a file system mounted with noatime
		root.Chtimes(k.path(), now, time.Time{})
	}
	return buildid.NewFile(f, info.Size(), filepath.Join(c.dir, k.path()), "debuginfod cache", f), look{}
}

// openRegular opens the regular file at name below root, for the given access: os.O_RDONLY or
// os.O_RDWR. The file must belong to this user or root. openRegular follows no link and never
// blocks.
func openRegular(root *os.Root, name string, access int) (*os.File, fs.FileInfo, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, errors.New("not a regular file")
	}
	if err := checkOwner(before); err != nil {
		return nil, nil, err
	}
	f, err := root.OpenFile(name, access|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errors.New("replaced while it was opened")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// An otherBuildError reports an ELF file with another ID.
type otherBuildError struct{ got buildid.ID }

func (e *otherBuildError) Error() string { return "another build, " + e.got.String() }

// verify fails unless the size bytes of f are a complete ELF file with the given ID.
func verify(f *os.File, size int64, id buildid.ID) error {
	got, err := buildid.Read(f, size)
	switch {
	case errors.Is(err, buildid.ErrNoID):
		return err
	case err != nil:
		// err may be a read error: it is wrapped, so that passing can recognize it
		return fmt.Errorf("incomplete ELF file: %w", lastError(err))
	case got != id:
		return &otherBuildError{got}
	}
	return checkWhole(f, size)
}

// control returns the duration in a control file, which holds a number of seconds. It returns
// fallback if the file has no number. If create is set, it creates a missing file with fallback.
func (c *diskCache) control(root *os.Root, name string, fallback time.Duration, create bool) time.Duration {
	f, _, err := openRegular(root, name, os.O_RDONLY)
	if err != nil {
		if create && errors.Is(err, fs.ErrNotExist) {
			makeFile(root, name, strconv.FormatInt(int64(fallback/time.Second), 10), 0o644)
		}
		return fallback
	}
	defer f.Close()
	buf := make([]byte, maxControl)
	n, _ := f.Read(buf)
	if d, ok := parseSeconds(string(buf[:n])); ok {
		return d
	}
	return fallback
}

func makeFile(root *os.Root, name, text string, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return cmp.Or(err, f.Close())
}

// parseSeconds reads a control file as scanf does: blanks, a sign, digits. It ignores text after
// the digits.
func parseSeconds(text string) (time.Duration, bool) {
	text = strings.TrimLeft(text, " \t\r\n\v\f")
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[0] == '-' || text[0] == '+')) {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	const century = 100 * 365 * 24 * 3600
	return time.Duration(min(max(n, 0), century)) * time.Second, true
}

// checkWhole fails if the file is cut off. It checks the section headers: linkers put them at the
// end.
func checkWhole(f *os.File, size int64) error {
	var h [64]byte
	n, _ := f.ReadAt(h[:], 0)
	end, ok := sectionsEnd(h[:n])
	if !ok || end > uint64(size) {
		return errors.New("incomplete ELF file: its section headers are missing")
	}
	return nil
}

// hexName reports whether name can be a build ID's directory.
func hexName(name string) bool {
	return name != "" && strings.Trim(name, "0123456789abcdef") == ""
}

// tempName reports whether name is an unfinished download of elfutils or symfilter. Such a name
// ends with a dot and six random characters, from mkstemp.
func tempName(name string) bool {
	ext := path.Ext(name)
	if base := strings.TrimSuffix(name, ext); base != "debuginfo" && base != "executable" || len(ext) != 7 {
		return false
	}
	return strings.Trim(ext[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
