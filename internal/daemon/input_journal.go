package daemon

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/seldom"
)

// uploadIdle bounds the pauses within an upload. The sender has all entries before it begins, so it
// need not pause.
const uploadIdle = time.Minute

const journalPeer = "journal"

// A journalInput receives journals from systemd-journal-upload. All uploads share one session, with
// the processes of all machines.
type journalInput struct {
	h *httpInput

	broken, cut seldom.Limiter

	mu   sync.Mutex
	open *session // held between uploads; may be nil
}

// enter returns the session for an upload, which memory.leave must release.
func (j *journalInput) enter() *session {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open == nil {
		j.open = j.h.p.memory.enter(journalPeer, nil, true)
	}
	return j.h.p.memory.enter(journalPeer, nil, true)
}

// end releases the session that the input holds between uploads. If s is not nil, end does so only
// if that session is s: after a failure of the output, the input may already hold a new session.
func (j *journalInput) end(s *session) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open == nil || s != nil && j.open != s {
		return nil
	}
	s, j.open = j.open, nil
	return j.h.p.memory.leave(s)
}

// upload writes the entries of a request to the output, and then acknowledges them.
func (j *journalInput) upload(w http.ResponseWriter, r *http.Request) {
	if err := checkUpload(r); err != nil {
		refuseError(w, err)
		return
	}
	body, done, err := unpacked(r, j.h.p.house.unpacking)
	if err != nil {
		refuseError(w, err)
		return
	}
	defer done()
	control := http.NewResponseController(w)
	ctx := j.h.running()
	defer context.AfterFunc(ctx, func() {
		control.SetReadDeadline(time.Now())
		control.SetWriteDeadline(time.Now().Add(lingers))
	})()
	err = j.write(ctx, control, body)
	if err != nil {
		if ctx.Err() != nil {
			err = errStopped
		}
		if n, ok := j.broken.May(time.Now()); ok {
			j.h.p.log.Warn("an upload of a journal was not read completely; the sender will repeat the upload", "peer", peerOf(r), "error", err, "times", n)
		}
		refuseError(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusAccepted)
	io.WriteString(w, "OK.\n") // the response of systemd-journal-remote
}

// checkUpload checks the header of an upload. Its error is a refusal.
func checkUpload(r *http.Request) error {
	if r.Method != http.MethodPost {
		return refusef(http.StatusMethodNotAllowed, "this path accepts journals from systemd-journal-upload, by POST")
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/vnd.fdo.journal" {
		return refusef(http.StatusUnsupportedMediaType, "Content-Type is %.60q; send a journal in the export format, as application/vnd.fdo.journal", r.Header.Get("Content-Type"))
	}
	return nil
}

func (j *journalInput) write(ctx context.Context, control *http.ResponseController, body io.Reader) (err error) {
	s := j.enter()
	defer func() {
		var failed *outputError
		if errors.As(err, &failed) {
			j.end(s) // an error would only repeat err
		}
		if e := j.h.p.memory.leave(s); err == nil && e != nil {
			err = &outputError{e}
		}
	}()
	block := blockPool.Get().(*[block + 1]byte)
	defer blockPool.Put(block)
	var cut input.JournalEntries
	var entries []byte
	for {
		control.SetReadDeadline(time.Now().Add(uploadIdle))
		// the end of ctx sets a deadline, which the line above may have overwritten
		if ctx.Err() != nil {
			return errStopped
		}
		n, err := body.Read(block[:])
		var bad error
		entries, bad = cut.Append(entries[:0], block[:n])
		if len(entries) > 0 {
			if _, err := s.Write(entries); err != nil {
				return &outputError{err}
			}
		}
		switch {
		case bad != nil:
			return refusef(http.StatusBadRequest, "%v; the entries before the damaged one were written", bad)
		case err == io.EOF && cut.Unfinished():
			return refusef(http.StatusBadRequest, "the upload ends within an entry; send the upload again")
		case err == io.EOF:
			j.logLost(cut.Cut)
			if err := j.h.p.memory.saveAfter(s); err != nil {
				return &outputError{err}
			}
			return nil
		case err != nil:
			return err
		}
	}
}

func (j *journalInput) logLost(lost int64) {
	if lost == 0 {
		return
	}
	j.h.p.counts.lose(lost)
	if n, ok := j.cut.May(time.Now()); ok {
		j.h.p.log.Warn("messages of a journal are longer than 512 KiB, and were cut", "lost", lost, "times", n)
	}
}
