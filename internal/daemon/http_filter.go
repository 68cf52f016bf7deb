package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// lingers bounds how long a peer may take to read the rest of a response once the input is stopped.
const lingers = 2 * time.Second

// Trailers with the numbers of resolved and unresolved addresses in the body. A response without a
// body has them in its header.
const (
	resolvedHeader   = "Symfilter-Resolved"
	unresolvedHeader = "Symfilter-Unresolved"
)

var errStopped = errors.New("symfilterd is stopping, or its configuration was changed; send the request again")

// filter filters the body of a request. It writes the output of each block before it reads the next
// block.
func (h *httpInput) filter(w http.ResponseWriter, r *http.Request) {
	ask, err := h.ask(r)
	if err != nil {
		refuseError(w, err)
		return
	}
	if ask.key != "" && ask.peer { // a response has the lines of a single request
		if !h.hold(ask.key) {
			refuse(w, http.StatusConflict, fmt.Sprintf("another request with the key %q is open; wait for its answer, or use another key", ask.key))
			return
		}
		defer h.drop(ask.key)
	}
	body, done, err := unpacked(r, h.p.house.unpacking)
	if err != nil {
		refuseError(w, err)
		return
	}
	defer done()
	control := http.NewResponseController(w)
	control.EnableFullDuplex() // fails for HTTP/2, which is always full duplex
	ctx := h.running()
	defer context.AfterFunc(ctx, func() {
		control.SetReadDeadline(time.Now())
		control.SetWriteDeadline(time.Now().Add(lingers))
	})()
	a := &answer{w: w, control: control, json: ask.json}
	s, leave := h.session(ask, a)
	err = copyLines(s, body, !ask.peer)
	if err == nil && !ask.peer {
		if e := h.p.memory.saveAfter(s); e != nil {
			err = &outputError{e}
		}
	}
	if e := leave(); e != nil {
		err = &outputError{e}
	}
	if err == nil {
		a.finish(ask.peer, s)
		return
	}
	if ctx.Err() != nil {
		err = errStopped
	}
	h.p.log.Debug("a request has failed", "peer", ask.from, "error", err)
	if a.begun { // the peer must notice the incomplete response
		panic(http.ErrAbortHandler)
	}
	refuseError(w, err)
}

// session returns the session for a request, which leave releases. A request with a key continues
// the context of earlier requests with that key. A request without a key continues its peer's
// context, but if the output is the response, it starts without a context.
func (h *httpInput) session(ask *ask, a *answer) (s *session, leave func() error) {
	name, shared := ask.key, !ask.peer
	if name == "" {
		name, shared = ask.from, false
	}
	switch {
	case ask.peer && ask.key == "":
		s = h.p.session(name, a)
		s.plain, s.adjust = true, ask.adjust
		return s, s.Close
	case ask.peer:
		s = h.p.memory.enter(name, a, shared)
		s.adjust, s.ownIfPeer = ask.adjust, false
	default:
		s = h.p.memory.enter(name, nil, shared)
	}
	return s, func() error { return h.p.memory.leave(s) }
}

// copyLines gives the lines of a body to the session. If end is set, it completes the last line.
func copyLines(s *session, body io.Reader, end bool) error {
	b := blocks{r: body}
	defer b.free()
	for {
		lines, err := b.next()
		if end && err != nil && len(lines) > 0 && lines[len(lines)-1] != '\n' {
			lines = append(lines, '\n')
		}
		if len(lines) > 0 {
			if _, err := s.Write(lines); err != nil {
				return &outputError{err}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// An outputError is an error of the output of a request.
type outputError struct{ err error }

func (e *outputError) Error() string { return "the output does not accept the lines: " + e.err.Error() }

// A refusal is an error with the HTTP status of its response.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refusef(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// refuseError responds to a failed request. The response must not have begun.
func refuseError(w http.ResponseWriter, err error) {
	var known *refusal
	var output *outputError
	switch {
	case errors.As(err, &known):
		switch known.status {
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", "POST, PUT")
		case http.StatusUnsupportedMediaType:
			w.Header().Set("Accept-Encoding", "gzip, zstd")
		}
		refuse(w, known.status, known.text)
	case errors.Is(err, errStopped):
		refuse(w, http.StatusServiceUnavailable, err.Error())
	case errors.As(err, &output):
		refuse(w, http.StatusServiceUnavailable, err.Error()+"; send the request again later")
	default:
		refuse(w, http.StatusBadRequest, "the body ends too early, or is not valid: "+err.Error()+"; send the request again")
	}
}

// An answer writes the body of a response, and flushes each block.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	json    bool
	begun   bool
}

// begin sets the header. The first write or flush sends it.
func (a *answer) begin() {
	h := a.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if a.json {
		h.Set("Content-Type", "application/x-ndjson")
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Trailer", resolvedHeader+", "+unresolvedHeader)
	a.begun = true
}

func (a *answer) Write(p []byte) (int, error) {
	if !a.begun {
		a.begin()
	}
	n, err := a.w.Write(p)
	if err == nil {
		err = a.control.Flush()
	}
	return n, err
}

// finish ends the response after the last line.
func (a *answer) finish(peer bool, s *session) {
	if peer && !a.begun {
		a.begin()
		a.control.Flush()
	}
	resolved, unresolved := s.tally()
	a.w.Header().Set(resolvedHeader, strconv.FormatInt(resolved, 10))
	a.w.Header().Set(unresolvedHeader, strconv.FormatInt(unresolved, 10))
	if !peer {
		a.w.WriteHeader(http.StatusNoContent)
	}
}

const smallBlock = 4 << 10

// quietReads is the number of consecutive small reads after which a stream releases its large
// block.
const quietReads = 64

var blockPool = sync.Pool{New: func() any { return new([block + 1]byte) }}

// A blocks cuts the data from a reader into whole lines.
type blocks struct {
	r     io.Reader
	buf   []byte
	large *[block + 1]byte // memory of buf; nil: buf is small
	have  int              // bytes in buf
	given int              // bytes of buf returned by next
	few   int              // consecutive small reads
}

// next returns the whole lines so far. A line longer than a block is returned in parts. The slice
// is valid until the next call, and has capacity for an added line end. With an error or io.EOF,
// next returns all remaining bytes.
func (b *blocks) next() ([]byte, error) {
	if b.buf == nil {
		b.buf = make([]byte, smallBlock, smallBlock+1)
	}
	b.resize()
	for {
		n, err := b.r.Read(b.buf[b.have:])
		from := b.have
		b.have += n
		if b.few++; n > smallBlock/2 {
			b.few = 0
		}
		switch {
		case err != nil:
			b.given = b.have
		case b.have == len(b.buf) && b.large == nil:
			b.resize()
			continue
		default:
			if b.given = from + lastLineEnd(b.buf[from:b.have]); b.given == from {
				b.given = 0
			}
			if b.given == 0 && b.have == len(b.buf) {
				b.given = b.have
			}
		}
		if b.given > 0 || err != nil {
			return b.buf[:b.given], err
		}
	}
}

// resize drops the returned bytes, and takes a block of a suitable size.
func (b *blocks) resize() {
	rest := b.buf[b.given:b.have]
	switch {
	case b.large == nil && len(rest) == len(b.buf):
		b.large = blockPool.Get().(*[block + 1]byte)
		b.buf = b.large[:block]
	case b.large != nil && b.few >= quietReads && len(rest) < smallBlock:
		small := make([]byte, smallBlock, smallBlock+1)
		b.have = copy(small, rest)
		b.free()
		b.buf, b.given = small, 0
		return
	}
	b.have, b.given = copy(b.buf, rest), 0
}

// free releases a large block. Lines returned by next are no longer valid.
func (b *blocks) free() {
	if b.large != nil {
		blockPool.Put(b.large)
		b.large, b.buf = nil, nil
	}
}
