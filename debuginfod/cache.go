package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// The control files, with elfutils' names and defaults.
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
	id   buildid.ID
	kind buildid.Kind // Debug or Executable
}

// word is the last part of the file's path and of its URL.
func (k key) word() string {
	if k.kind == buildid.Executable {
		return "executable"
	}
	return "debuginfo"
}

func (k key) path() string { return k.id.String() + "/" + k.word() }

// keys returns the files that answer q, the better ones first.
func keys(q buildid.Query) []key {
	switch q.Kind {
	case buildid.Executable:
		return []key{{q.ID, buildid.Executable}}
	case buildid.Alt:
		return []key{{q.ID, buildid.Debug}}
	}
	if q.Better {
		return []key{{q.ID, buildid.Debug}}
	}
	return []key{{q.ID, buildid.Debug}, {q.ID, buildid.Executable}}
}

// A Cache finds files that were fetched earlier, by any client that keeps them as elfutils does. It asks no server and changes
// nothing but access times. It may be used by many goroutines.
type Cache struct {
	dir string

	mu     sync.Mutex
	misses missCount // guarded by mu
}

// NewCache returns the cache in dir, which need not exist.
func NewCache(dir string) *Cache {
	if dir != "" {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
	}
	return &Cache{dir: dir, misses: missCount{limits: missLimits{maxMisses, keptMisses, missLook}}}
}

// Find returns the file that q asks for, verified. A miss wraps [fs.ErrNotExist].
func (c *Cache) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	if note == nil {
		note = func(buildid.Attempt) {}
	}
	root, err := c.open()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			note(buildid.Attempt{Where: c.where(), Said: "there is no cache"})
		} else {
			note(buildid.Attempt{Where: c.where(), Said: "not used: " + lastError(err).Error()})
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
		note(buildid.Attempt{Where: filepath.Join(c.dir, k.path()), Said: l.said})
		if first == nil {
			first = l.passing
		}
	}
	return nil, c.miss(q, first)
}

func (c *Cache) where() string {
	if c.dir == "" {
		return "debuginfod cache"
	}
	return c.dir
}

// miss is the error of a search that found nothing: fs.ErrNotExist, unless err is about this moment rather than about the file.
func (c *Cache) miss(q buildid.Query, err error) error {
	if err = passing(err); err != nil {
		return fmt.Errorf("build ID %s: %s: %w", q.ID, c.where(), err)
	}
	return fmt.Errorf("build ID %s: %s: %w", q.ID, c.where(), fs.ErrNotExist)
}

// passing returns err if it says that the process or the system has too much to do, or a disk is failing; nil otherwise.
func passing(err error) error {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EINTR, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return err
		}
	}
	return nil
}

// errNoCache is about an environment without a home.
var errNoCache = errors.New("no directory for a cache is known (DEBUGINFOD_CACHE_PATH)")

// open opens the cache's directory if it is the user's or root's, and nobody else can write to it. Others may read it: elfutils makes it
// with all the rights that the umask leaves. Where that leaves the group's right to write, the cache is refused, as is one for everybody.
// The directories and files in it are checked one by one.
func (c *Cache) open() (*os.Root, error) {
	if c.dir == "" {
		return nil, errNoCache
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

// Check returns why a cache that is there is not used. It looks at the directory alone, and at nothing in it.
func (c *Cache) Check() error {
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
		return errors.New("it is no directory")
	}
	if err := checkOwner(info); err != nil {
		return err
	}
	return checkMode(info)
}

// A look is what lies at a place of the cache where there is no file to use.
type look struct {
	said    string
	miss    bool          // an empty file that still holds
	age     time.Duration // of the miss
	wrong   bool          // a regular file of ours with another content
	passing error         // nothing is known, because of this
}

// look opens k's file and verifies it through the descriptor that it returns.
func (c *Cache) look(root *os.Root, k key) (*buildid.File, look) {
	bad := func(err error) (*buildid.File, look) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, look{said: "no such file"}
		}
		return nil, look{said: "not used: " + lastError(err).Error(), passing: passing(err)}
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
		l := look{said: "an empty file: the servers had none"}
		l.age = max(time.Since(info.ModTime()), 0)
		l.miss = l.age <= c.control(root, missFile, defaultMiss, false)
		return nil, l
	}
	if err := checkMode(info); err != nil {
		f.Close()
		return bad(err)
	}
	if err := verify(f, info.Size(), k.id); err != nil {
		f.Close()
		failing := passing(err)
		return nil, look{said: "not used: " + err.Error(), wrong: failing == nil, passing: failing}
	}
	if now := time.Now(); now.Sub(accessed(info)) > atimeGrain {
		root.Chtimes(k.path(), now, time.Time{}) // also where the file system notes no reading
	}
	return buildid.NewOSFile(f, info.Size(), filepath.Join(c.dir, k.path()), "debuginfod cache", f), look{}
}

// openRegular opens the regular file of ours at name below root for access, os.O_RDONLY or os.O_RDWR, following no link and never
// blocking.
func openRegular(root *os.Root, name string, access int) (*os.File, fs.FileInfo, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, errors.New("it is no regular file")
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
		err = errors.New("it was exchanged while it was opened")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// An otherBuildError is about a whole file with another ID.
type otherBuildError struct{ got buildid.ID }

func (e *otherBuildError) Error() string { return "it is another build, " + e.got.String() }

// verify returns what is wrong with the file of size bytes behind f as the file of id.
func verify(f *os.File, size int64, id buildid.ID) error {
	got, err := buildid.Read(f, size)
	switch {
	case errors.Is(err, buildid.ErrNoID):
		return err
	case err != nil:
		return fmt.Errorf("it is no whole ELF file: %w", lastError(err)) // or it cannot be read: passing
	case got != id:
		return &otherBuildError{got}
	}
	return checkWhole(f, size)
}

// control returns the seconds that the control file name holds, or the default where it holds no number; create makes a missing one.
func (c *Cache) control(root *os.Root, name string, otherwise time.Duration, create bool) time.Duration {
	f, _, err := openRegular(root, name, os.O_RDONLY)
	if err != nil {
		if create && errors.Is(err, fs.ErrNotExist) {
			makeFile(root, name, strconv.FormatInt(int64(otherwise/time.Second), 10), 0o644)
		}
		return otherwise
	}
	defer f.Close()
	buf := make([]byte, maxControl)
	n, _ := f.Read(buf)
	if d, ok := parseSeconds(string(buf[:n])); ok {
		return d
	}
	return otherwise
}

// makeFile makes the file name below root unless there is one.
func makeFile(root *os.Root, name, text string, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// parseSeconds reads a control file as scanf does: blanks, a sign, digits; what follows is nobody's.
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

// checkWhole returns an error when the file's section headers, which linkers put at its end, are not all there.
func checkWhole(f *os.File, size int64) error {
	var h [64]byte
	n, _ := f.ReadAt(h[:], 0)
	end, ok := sectionsEnd(h[:n])
	if !ok || end > uint64(size) {
		return errors.New("it is no whole ELF file: its section headers are missing")
	}
	return nil
}

// hexName reports whether name can be the directory of a build ID.
func hexName(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return name != ""
}

// tempName reports whether name is that of a file that is being written, by us or by elfutils.
func tempName(name string) bool {
	ext := path.Ext(name)
	if base := strings.TrimSuffix(name, ext); base != "debuginfo" && base != "executable" || len(ext) != 7 {
		return false
	}
	return strings.Trim(ext[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
