package debuginfod

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// Options configure a Client: its servers, its limits and its cache. The zero value has no servers.
type Options struct {
	// words as in DEBUGINFOD_URLS: http and https URLs, which are prefixes of paths, and ima: tags
	URLs     []string
	Offline  bool   // read only the cache; make no request
	AskAgain bool   // do not believe the misses in the cache; ask the servers again
	CacheDir string // if empty, the directory that elfutils' client uses
	// bytes of the cache; beyond that, the least recently read files are removed. 0: only elfutils'
	// rule applies
	CacheMax int64
	Version  string // version of this program, for the User-Agent
	// name of this program's own debuginfod server, sent as X-Forwarded-For: the server notices its
	// own requests by that name. Empty: not sent. See [WithForwarded].
	Forwarded string
	// time for each 100 KiB from a server. 0: 90 s; negative: only MaxTime applies
	Timeout    time.Duration
	MaxTime    time.Duration // time for one file from all servers. 0: 10 min
	MaxSize    int64         // bytes of one file. 0: 4 GiB
	RetryLimit int           // retries of a failed request. 0: 2; negative: none
	// path of a file with headers for each request, one in each line; a changed file is read again
	HeadersFile string

	// Progress is called before a file is requested, at the end, and at most ten times a second in
	// between. One goroutine at a time calls it for each file.
	//
	// FirstContact is called once for each server, before the first request to it.
	//
	// FirstFailure is called once for each server: after a failed request that is not retried, or
	// at once if the server cannot be reached. For servers that never get a request, see [Server].
	//
	// All three must return soon.
	Progress     func(Progress)
	FirstContact func(server string)
	FirstFailure func(server, reason string)

	// Observe is called at the end of each request to a server, by any goroutine. It must return
	// soon.
	Observe func(Request)

	// Limited is called once, by any goroutine, when more than burst new build IDs were requested
	// at once. After that, servers are asked for at most perSecond new IDs in each second. It must
	// return soon.
	Limited func(burst, perSecond int)

	// Verbose and ShowProgress are the values of DEBUGINFOD_VERBOSE and DEBUGINFOD_PROGRESS. Only
	// the command uses them: this package prints nothing.
	Verbose, ShowProgress bool
}

// Progress describes a download.
type Progress struct {
	ID     buildid.ID
	Kind   buildid.Kind
	Name   string // name of the module, from the first caller: untrusted text of a log
	Server string // the server that sends the file; empty until one does
	Bytes  int64  // bytes received so far
	Total  int64  // -1 if the server does not state it
	Done   bool   // set in the last call for this file
	Err    error  // set with Done: the reason why there is no file; nil if the file was found
}

// A Request describes a completed request to a server.
type Request struct {
	Server  string
	Outcome Outcome
	Bytes   int64         // bytes received of the answer's body, before they are inflated
	Took    time.Duration // until the body was received, or the request failed
}

// An Outcome is the outcome of a request.
type Outcome string

const (
	Found    Outcome = "found"
	NotThere Outcome = "not_there" // the server answered that it has no such file
	Failed   Outcome = "failed"
	Canceled Outcome = "canceled" // another server was first, or no caller waits any more
)

// OptionsFromEnv returns the Options of the DEBUGINFOD_ variables. The error lists variables with
// unusable values. The Options are still usable, with the defaults for these variables.
func OptionsFromEnv(getenv func(string) string) (Options, error) {
	o := Options{
		URLs:         strings.Fields(getenv("DEBUGINFOD_URLS")),
		CacheDir:     cacheDir(getenv),
		HeadersFile:  getenv("DEBUGINFOD_HEADERS_FILE"),
		Verbose:      getenv("DEBUGINFOD_VERBOSE") != "",
		ShowProgress: getenv("DEBUGINFOD_PROGRESS") != "",
	}
	var bad []string
	number := func(name string) (int64, bool) {
		text := strings.TrimSpace(getenv(name))
		if text == "" {
			return 0, false
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			bad = append(bad, name)
		}
		return n, err == nil
	}
	seconds := func(n int64) time.Duration {
		return time.Duration(min(n, int64(breakMost/time.Second)*24)) * time.Second
	}
	if n, ok := number("DEBUGINFOD_TIMEOUT"); ok {
		if o.Timeout = seconds(n); n <= 0 {
			o.Timeout = -1 // as in elfutils: no limit
		}
	}
	if n, ok := number("DEBUGINFOD_MAXTIME"); ok && n > 0 {
		o.MaxTime = seconds(n)
	}
	if n, ok := number("DEBUGINFOD_MAXSIZE"); ok && n > 0 {
		o.MaxSize = n
	}
	if n, ok := number("DEBUGINFOD_RETRY_LIMIT"); ok {
		if o.RetryLimit = int(min(n, 100)); n <= 0 {
			o.RetryLimit = -1
		}
	}
	if bad != nil {
		return o, fmt.Errorf("%s: want a whole number", strings.Join(bad, ", "))
	}
	return o, nil
}

// cacheDir returns the cache directory of elfutils' client, or an empty string if the environment
// does not name one.
func cacheDir(getenv func(string) string) string {
	if dir := getenv("DEBUGINFOD_CACHE_PATH"); dir != "" {
		return dir
	}
	home := getenv("HOME")
	if home != "" {
		old := filepath.Join(home, ".debuginfod_client_cache")
		if _, err := os.Stat(old); err == nil {
			return old
		}
	}
	if dir := getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "debuginfod_client")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".cache", "debuginfod_client")
}

// SystemURLs returns the words of the *.urls files in dir, usually /etc/debuginfod. Login shells
// put these words into DEBUGINFOD_URLS. It skips lines that start with #. It returns no words if
// dir does not exist.
func SystemURLs(dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.urls"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var words []string
	for _, name := range names {
		text, err := readFile(name, maxURLsFile)
		if err != nil {
			return words, err
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "#") {
				words = append(words, strings.Fields(line)...)
			}
		}
	}
	return words, nil
}

// readFile returns the content of the regular file at name. It fails if the file is longer than
// most, in bytes.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: more than %d bytes", name, most)
	}
	return text, err
}

// parseURLs returns the servers in words, in order and without duplicates, at most maxURLs. If a
// server cannot be used, its field refused has the reason.
func parseURLs(words []string) []*server {
	var all []*server
	ima := ""
	for _, word := range words {
		if tag, ok := strings.CutPrefix(word, "ima:"); ok {
			switch tag {
			case "ignore":
				ima = ""
			case "enforcing":
				ima = "refused: ima:enforcing asks for signatures that symfilter cannot check; write ima:ignore to accept the server's files without this check"
			default:
				ima = fmt.Sprintf("refused: %q is not a known tag; the only one is ima:ignore", redacted(word))
			}
			continue
		}
		s := newServer(word)
		if s.refused == "" {
			s.refused = ima
		}
		same := func(o *server) bool { return o.prefix == s.prefix }
		if !slices.ContainsFunc(all, same) && len(all) < maxURLs {
			all = append(all, s)
		}
	}
	return all
}

// newServer returns the server with a URL prefix. Paths are appended to the prefix.
func newServer(prefix string) *server {
	s := &server{prefix: strings.TrimRight(prefix, "/"), verdicts: map[key]verdict{}}
	u, err := url.Parse(s.prefix)
	switch {
	case joined(prefix):
		s.name, s.refused = redacted(s.prefix), "refused: separate the URLs with blanks, as for elfutils"
	case err != nil: // the error holds the URL, which may hold a password
		s.name, s.refused = "a server of DEBUGINFOD_URLS", "refused: not a URL"
	case u.Scheme == "" || u.Opaque != "" && strings.Contains(u.Opaque, "@"): // user:password@host
		s.name, s.refused = redacted(s.prefix), "refused: the URL does not begin with http:// or https://"
	case u.Scheme != "http" && u.Scheme != "https":
		s.name, s.refused = redacted(s.prefix), fmt.Sprintf("refused: %q is neither http nor https", u.Scheme+":")
	case u.Host == "" || u.Opaque != "":
		s.name, s.refused = redacted(s.prefix), "refused: the URL names no host"
	case u.RawQuery != "" || u.Fragment != "":
		s.name, s.refused = redacted(s.prefix), "refused: the URL has a query or a fragment"
	default:
		s.user, u.User = u.User, nil
		s.url, s.name = u, u.String()
	}
	return s
}

// joined reports whether word looks like URLs with commas or semicolons between them.
func joined(word string) bool {
	for rest := word; ; {
		i := strings.IndexAny(rest, ",;")
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
		if rest == "" || strings.HasPrefix(rest, "http://") || strings.HasPrefix(rest, "https://") {
			return true
		}
	}
}

// redacted returns an unusable URL without possible secrets: the text before an @, and a query. An
// operator who forgets the scheme writes user:password@host, which is not a URL.
func redacted(word string) string {
	scheme, rest, ok := strings.Cut(word, "://")
	if ok && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") == "" {
		scheme += "://"
	} else {
		scheme, rest = "", word
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = "xxxxx" + rest[at:]
	}
	if query := strings.IndexAny(rest, "?#"); query >= 0 {
		rest = rest[:query+1] + "xxxxx"
	}
	return scheme + rest
}
