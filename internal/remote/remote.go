// Package remote fetches the profile of a running program over HTTP.
package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/wording"
)

// defaultSeconds is how long the program measures if the URL sets no time. It is net/http/pprof's
// default for a CPU profile.
const defaultSeconds = 30

// answerSlack is how long Profile waits for the answer in addition to the time for measuring.
const answerSlack = time.Minute

// maxRefusal bounds the bytes that are read of the text of an HTTP error.
const maxRefusal = 1 << 10

// URL parses name if it is the URL of a profile. Otherwise ok is false.
func URL(name string) (u *url.URL, ok bool) {
	if !strings.HasPrefix(name, "http://") && !strings.HasPrefix(name, "https://") {
		return nil, false
	}
	u, err := url.Parse(name)
	return u, err == nil && u.Host != ""
}

// Profile fetches the profile at u, and returns the body of the answer, which the caller closes. It
// waits for the URL's parameter seconds, 30 by default, and a minute more. Errors name the URL
// without its password.
func Profile(u *url.URL) (io.ReadCloser, error) {
	seconds, err := strconv.Atoi(cmp.Or(u.Query().Get("seconds"), strconv.Itoa(defaultSeconds)))
	if err != nil || seconds < 0 || seconds > int(time.Hour/time.Second) {
		return nil, fmt.Errorf("%s: seconds must be a number from 0 to 3600", u.Redacted())
	}
	client := &http.Client{Timeout: time.Duration(seconds)*time.Second + answerSlack}
	answer, err := client.Get(u.String())
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL
		}
		return nil, fmt.Errorf("get %s: %w", u.Redacted(), err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	refusal := answer.Status
	if why := strings.TrimSpace(string(text)); why != "" {
		refusal += ": " + wording.Line(why)
	}
	return nil, fmt.Errorf("get %s: %.300s", u.Redacted(), refusal)
}
