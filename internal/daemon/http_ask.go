package daemon

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/unpack"
)

const (
	keyHeader = "Symfilter-Key"
	maxKey    = maxPeerName // bytes

	// A packed body may unpack to freeBytes, or to maxRatio times its size if that is more. The
	// ratio of gzip reaches 1,000 for zeros, but rarely 50 for logs.
	freeBytes = 16 << 20
	maxRatio  = 200
)

// An ask holds the options of a request.
type ask struct {
	from string // the peer
	key  string // key of the context; empty: none
	peer bool   // the response has the output
	json bool   // the response is JSON
}

func (a *ask) adjust(o *filter.Options) {
	if o.Output = filter.Text; a.json {
		o.Output = filter.JSON
	}
}

// ask reads the options of a request from its header and URL. The error is a refusal.
func (h *httpInput) ask(r *http.Request) (a *ask, err error) {
	conf := &h.p.stage.Load().conf
	a = &ask{from: peerOf(r), peer: conf.Output.Peer, json: conf.Output.Format == "json"}
	if r.Method != http.MethodPost && r.Method != http.MethodPut {
		return nil, refusef(http.StatusMethodNotAllowed, "send the log with POST: curl -T FILE URL")
	}
	if r.Body == http.NoBody && r.Header.Get("Content-Length") == "" {
		return nil, refusef(http.StatusLengthRequired, "the request has no body; send the log as the body, with a Content-Length or chunked: curl -T FILE URL")
	}
	if err := logType(r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	query := r.URL.Query()
	for name, values := range query {
		if name != "key" && name != "format" || len(values) > 1 {
			return nil, refusef(http.StatusBadRequest, "%.40q in the URL is unknown, or given twice; the URL may have ?key= and ?format=", name)
		}
	}
	if a.key = query.Get("key"); a.key == "" {
		a.key = r.Header.Get(keyHeader)
	}
	if len(a.key) > maxKey || !utf8.ValidString(a.key) || strings.ContainsFunc(a.key, unicode.IsControl) {
		return nil, refusef(http.StatusBadRequest, "the key must be UTF-8 text of at most %d bytes, without control characters", maxKey)
	}
	switch format := query.Get("format"); {
	case format != "" && !a.peer:
		return nil, refusef(http.StatusBadRequest, "?format= is for pipelines with output: {peer: true}; the configuration sets the form of this pipeline's output")
	case format == "text", format == "json":
		a.json = format == "json"
	case format != "":
		return nil, refusef(http.StatusBadRequest, "?format=%.20q is neither text nor json", format)
	case a.peer:
		return a, a.accept(r.Header.Values("Accept"))
	}
	return a, nil
}

func peerOf(r *http.Request) string {
	if s, ok := r.Context().Value(seat{}).(*seat); ok {
		return s.peer
	}
	return ""
}

// logType refuses content types that logs never have. curl --data-binary sends the type of an HTML
// form, so that type is accepted.
func logType(s string) error {
	if s == "" {
		return nil
	}
	t, _, err := mime.ParseMediaType(s)
	switch {
	case errors.Is(err, mime.ErrInvalidMediaParameter):
		return nil
	case err == nil && (strings.HasPrefix(t, "text/") || slices.Contains([]string{
		"application/octet-stream", "application/x-www-form-urlencoded", "application/gzip", "application/zstd", "application/xml",
		"application/json", "application/x-ndjson", "application/jsonl", "application/vnd.fdo.journal",
	}, t)):
		return nil
	}
	return refusef(http.StatusUnsupportedMediaType,
		"a body of type %.60q is not accepted; send the log itself as text/plain or application/octet-stream: curl -T FILE URL, or --data-binary @FILE", s)
}

// accept selects the form of the response by the Accept headers. The error is a refusal.
func (a *ask) accept(headers []string) error {
	best, given := 0.0, false
	for _, header := range headers {
		for one := range strings.SplitSeq(header, ",") {
			t, params, err := mime.ParseMediaType(one)
			if given = true; err != nil {
				continue
			}
			q := 1.0
			if s, ok := params["q"]; ok {
				if q, err = strconv.ParseFloat(s, 64); err != nil {
					continue
				}
			}
			json := slices.Contains([]string{"application/x-ndjson", "application/jsonl", "application/json", "application/*"}, t)
			if text := t == "text/plain" || t == "text/*"; q > best && (json || text || t == "*/*") {
				if best = q; t != "*/*" {
					a.json = json
				}
			}
		}
	}
	if given && best == 0 {
		return refusef(http.StatusNotAcceptable, "the answer is text/plain or application/x-ndjson; accept one of them")
	}
	return nil
}

// unpacked returns the body of a request. If the Content-Encoding or the first bytes name a packed
// format, the body is unpacked within bounds. done releases its memory. The error is a refusal.
func unpacked(r *http.Request, memory *unpack.Memory) (body io.Reader, done func(), err error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ",")))
	var format *unpack.Format
	switch encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		format = unpack.Gzip
	case "zstd":
		format = unpack.Zstd
	default:
		return nil, nil, refusef(http.StatusUnsupportedMediaType, "the encoding %.40q of the body is unknown; use gzip or zstd, or none", encoding)
	}
	u := &sniffed{r: r.Body, memory: memory, format: format}
	return u, u.end, nil
}

// A sniffed reads the body of a request. It unpacks the body if the header or the first bytes name
// a packed format.
type sniffed struct {
	r      io.Reader
	memory *unpack.Memory
	format *unpack.Format // nil: detected by the first bytes

	head     []byte // read, not yet returned
	packed   counter
	plain    io.Reader      // nil: not known yet
	n        int64          // bytes read from plain
	unpacker *unpack.Reader // nil: not packed, or not known yet
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (s *sniffed) end() {
	if s.unpacker != nil {
		s.unpacker.Close()
	}
}

func (s *sniffed) Read(p []byte) (int, error) {
	if s.plain == nil {
		if err := s.begin(); err != nil {
			return 0, err
		}
	}
	if s.format == nil && len(s.head) == 0 {
		return s.r.Read(p)
	}
	n, err := s.plain.Read(p)
	switch s.n += int64(n); {
	case s.format == nil && n == len(s.head):
		s.head, err = nil, nil
	case s.format == nil:
		s.head, err = s.head[n:], nil
	case s.n > freeBytes && s.n > maxRatio*s.packed.n:
		return 0, refusef(http.StatusRequestEntityTooLarge,
			"the body unpacks to more than %d times its size; send the log unpacked, or in several requests", maxRatio)
	case err != nil && err != io.EOF:
		err = refusef(http.StatusBadRequest, "the body is not a valid %s file, or ends too early: %v", s.format, err)
	}
	return n, err
}

// begin decides whether the body is packed. It reads as few bytes as possible.
func (s *sniffed) begin() error {
	buf := make([]byte, unpack.LongestMagic)
	for undecided := s.format == nil; undecided; {
		n, err := s.r.Read(buf[len(s.head):])
		s.head = buf[:len(s.head)+n]
		s.format, undecided = unpack.FormatOf(s.head)
		if undecided = undecided && err == nil; err != nil && err != io.EOF {
			return err
		}
	}
	if s.format == nil {
		s.plain = bytes.NewReader(s.head)
		return nil
	}
	s.packed.r = io.MultiReader(bytes.NewReader(s.head), s.r)
	z, err := s.format.Open(&s.packed, s.memory)
	switch {
	case errors.Is(err, unpack.ErrNoMemory):
		return refusef(http.StatusRequestEntityTooLarge, "%v; send the log unpacked, or raise symbols.max_memory", err)
	case err != nil:
		return refusef(http.StatusBadRequest, "the body is not a valid %s file: %v; send the log again, or unpacked", s.format, err)
	}
	s.plain, s.unpacker = z, z
	return nil
}
