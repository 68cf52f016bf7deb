package debuginfod

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// missedByPrefix begins the name of a record beside a miss; the file name of the miss follows. The
// record has the servers without the file, which elfutils does not record. Each line has the Unix
// time of a server's answer, a space and the server's URL. elfutils' clients ignore the record, and
// remove it like a cached source, because the name begins with "source".
const missedByPrefix = "source.symfilter-"

const maxMissedBy = 64 << 10 // bytes of a record: 64 URLs of 1 KiB

func (k key) missedByPath() string { return missedByPath(k.id.String(), k.word()) }

func missedByPath(dir, word string) string { return dir + "/" + missedByPrefix + word }

// A serverMiss is a server's answer that it has no such file.
type serverMiss struct {
	server string    // the server's name, without user and password
	at     time.Time // in seconds
}

// missedBy returns the servers of k's miss. made is the time at which the miss was written. The
// result is nil if the servers are unknown, for example if another program has written the miss.
func missedBy(root *os.Root, k key, made time.Time) (all []serverMiss) {
	f, info, err := openRegular(root, k.missedByPath(), os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info.ModTime().Before(made) || info.Size() > maxMissedBy || checkMode(info) != nil {
		return nil // another program has renewed the miss, or the record cannot be trusted
	}
	text, err := io.ReadAll(io.LimitReader(f, maxMissedBy))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		second, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseInt(second, 10, 64)
		if err != nil || name == "" {
			return nil
		}
		all = append(all, serverMiss{name, time.Unix(n, 0)})
	}
	return all
}

// writeMissedBy records the servers of k's miss, which is already written. If that fails, the
// servers are unknown, and the miss is believed for all of them.
func writeMissedBy(root *os.Root, k key, all []serverMiss) {
	root.Remove(k.missedByPath())
	var b bytes.Buffer
	for _, m := range all {
		if strings.Contains(m.server, "\n") {
			return
		}
		fmt.Fprintf(&b, "%d %s\n", m.at.Unix(), m.server)
	}
	if b.Len() > 0 && b.Len() <= maxMissedBy {
		makeFile(root, k.missedByPath(), b.String(), 0o600)
	}
}

// believed reports whether l is a miss that needs no request. Either every server has answered that
// it has no such file, or another program has recorded the miss.
func (c *Client) believed(l look) bool {
	if !l.miss || c.o.AskAgain {
		return false
	}
	if l.by == nil {
		return true // as elfutils does
	}
	for _, s := range c.servers {
		if _, ok := l.missOf(s); s.refused == "" && !ok {
			return false
		}
	}
	return true
}

// missOf returns the answer of s; ok is false if the answer is unknown or has expired.
func (l *look) missOf(s *server) (m serverMiss, ok bool) {
	for _, m := range l.by {
		if m.server == s.name && time.Since(m.at) <= l.missFor {
			return m, true
		}
	}
	return serverMiss{}, false
}

// recall marks contenders that need no request: l, a miss in the cache, has an unexpired answer of
// their server.
func (c *Client) recall(all []*contender, l look) {
	if !l.miss || c.o.AskAgain {
		return
	}
	for _, e := range all {
		if m, ok := l.missOf(e.s); ok && !e.final {
			e.final, e.known, e.miss, e.missed = true, true, true, m.at
			e.reason = "no such file; remembered: " + answered(m.at, l.missFor)
		}
	}
}

// answered returns a text with the age of a remembered answer, and the time for which it is still
// believed.
func answered(at time.Time, missFor time.Duration) string {
	age := max(time.Since(at), 0)
	return fmt.Sprintf("the server answered %v ago, and is not asked again for %v", age.Round(time.Second), max(missFor-age, 0).Round(time.Second))
}

// missReason describes a remembered miss: which servers answered, and when.
func (l *look) missReason() string {
	var names []string
	at := time.Now().Add(-l.age)
	for _, m := range l.by {
		names = append(names, m.server)
		if m.at.Before(at) {
			at = m.at
		}
	}
	who := strings.Join(names, " and ")
	if l.by == nil {
		who = "the servers that another program asked"
	}
	age := max(time.Since(at), 0)
	if !l.miss {
		return fmt.Sprintf("%s had no such file %v ago; this answer has expired", who, age.Round(time.Second))
	}
	return fmt.Sprintf("%s had no such file %v ago; this answer is kept for %v more, or until this file is removed",
		who, age.Round(time.Second), max(l.missFor-age, 0).Round(time.Second))
}
