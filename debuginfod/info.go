package debuginfod

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// CacheInfo describes the state of a cache, for display.
type CacheInfo struct {
	Dir       string
	Exists    bool
	Mode      fs.FileMode
	Files     int   // files that seem usable by name, type, owner and mode
	Misses    int   // empty files
	Temporary int   // files being written, or left by a killed process
	Size      int64 // bytes of all files
	// interval between two cleanings
	Clean       time.Duration
	Unused      time.Duration // age since the last read at which a file is removed
	Miss        time.Duration // time for which a miss is kept
	LastCleaned time.Time     // zero if never
	Problems    []string      // each with its remedy; at most 20
}

// Info examines the cache. It changes nothing.
func (c *Cache) Info() CacheInfo {
	info := CacheInfo{Dir: c.dir, Clean: defaultCleanInterval, Unused: defaultMaxUnused, Miss: defaultMiss}
	problem := func(format string, args ...any) {
		if len(info.Problems) < maxProblems {
			info.Problems = append(info.Problems, fmt.Sprintf(format, args...))
		}
	}
	root, err := c.open()
	if errors.Is(err, fs.ErrNotExist) {
		return info
	}
	if err != nil {
		info.Exists = !errors.Is(err, errNoCache)
		problem("the cache is not used: %v", lastError(err))
		return info
	}
	defer root.Close()
	info.Exists = true
	if st, err := root.Stat("."); err == nil {
		info.Mode = st.Mode()
	}
	info.Clean = c.control(root, cleanIntervalFile, defaultCleanInterval, false)
	info.Unused = c.control(root, maxUnusedFile, defaultMaxUnused, false)
	info.Miss = c.control(root, missFile, defaultMiss, false)
	if st, err := root.Lstat(cleanIntervalFile); err == nil {
		info.LastCleaned = st.ModTime()
	}
	top, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		problem("the cache cannot be listed: %v", lastError(err))
	}
	seen := 0
	for _, dir := range top {
		if !hexName(dir.Name()) {
			continue
		}
		st, err := root.Lstat(dir.Name())
		if err == nil {
			err = checkDir(st)
		}
		if err != nil {
			problem("%q is not used: %v", dir.Name(), lastError(err))
			continue
		}
		entries, _ := fs.ReadDir(root.FS(), dir.Name())
		for _, e := range entries {
			if seen++; seen > maxCacheFiles {
				problem("there are more than %d files", maxCacheFiles)
				return info
			}
			st, err := e.Info()
			if err != nil || strings.HasPrefix(e.Name(), missedByPrefix) {
				continue
			}
			name := dir.Name() + "/" + e.Name()
			err = checkOwner(st)
			switch {
			case !st.Mode().IsRegular():
				problem("%q is not used: not a regular file", name)
				continue
			case err != nil:
				problem("%q is not used: %v", name, err)
				continue
			}
			info.Size += st.Size()
			switch {
			case tempName(e.Name()):
				info.Temporary++
			case st.Size() == 0:
				info.Misses++
			case checkMode(st) != nil:
				problem("%q is not used: %v", name, checkMode(st))
			default:
				info.Files++
			}
		}
	}
	return info
}

// A ProbeResult is a server's answer to one request.
type ProbeResult struct {
	Server    string
	Reachable bool          // the server sent an HTTP answer
	Works     bool          // a debuginfod server answered, with or without the file
	Has       bool          // the server has the file
	Took      time.Duration // time until the answer began
	Answer    string        // the answer as text, or the reason why there is none
}

// Probe asks one server, by its name from [Client.Servers], for the debug file of id, or of a
// random ID if id is zero. It makes one request and reads only the beginning of the answer. The
// outcome does not affect later requests.
func (c *Client) Probe(ctx context.Context, name string, id buildid.ID) ProbeResult {
	r := ProbeResult{Server: name}
	i := slices.IndexFunc(c.servers, func(s *server) bool { return s.name == name })
	if i < 0 {
		r.Answer = "not a server of this client"
		return r
	}
	s := c.servers[i]
	switch {
	case s.refused != "":
		r.Answer = s.refused
		return r
	case c.o.Offline:
		r.Answer = "not asked: offline"
		return r
	}
	if id.IsZero() {
		raw := make([]byte, 20)
		rand.Read(raw)
		id, _ = buildid.FromBytes(raw)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.MaxTime, errTotal)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(c.ctx, func() { stop(ErrClosed) })()
	w := newWatch(c.timeout, stop)
	defer w.stop()
	began := time.Now()
	resp, err := c.get(ctx, s, key{id: id, kind: buildid.Debug}.url())
	r.Took = time.Since(began)
	if err != nil {
		r.Answer = c.failed(ctx, err, began, false).reason
		return r
	}
	defer resp.Body.Close()
	r.Reachable = true
	if resp.StatusCode != http.StatusOK {
		miss, f := refused(resp, c.o.MaxSize)
		if r.Works = miss; miss {
			r.Answer = fmt.Sprintf("%d: no such file", resp.StatusCode)
		} else {
			r.Answer = f.reason
		}
		return r
	}
	var head [len(elfMagic)]byte
	if _, err := io.ReadFull(resp.Body, head[:]); err != nil || string(head[:]) != elfMagic {
		r.Answer = "sent something other than an ELF file"
		return r
	}
	r.Works, r.Has, r.Answer = true, true, "has the file"
	return r
}
