package daemon

import "net/http"

// A journalInput takes journals from systemd-journal-upload.
type journalInput struct {
	h *httpInput
}

func (j *journalInput) upload(w http.ResponseWriter, r *http.Request) {}
