package dialect

import "github.com/symfilter/symfilter/buildid"

// A savedKernel is what a Reader remembers of the kernel that has logged the last lines.
type savedKernel struct {
	At      int64  `json:"at"`                // line that has named it, or has its first frame; 0: there is none
	Release string `json:"release,omitempty"` // that the log has named last
	ID      string `json:"id,omitempty"`
	Open    bool   `json:"open,omitempty"`  // a report has begun that has not named its kernel
	Fault   string `json:"fault,omitempty"` // the last function that an instruction was in
	FaultAt int64  `json:"fault_at,omitempty"`
	EntryAt int64  `json:"entry_at,omitempty"` // the last line with a function that saves the registers of stopped code
}

// saveKernel sets s to what r remembers of the kernel.
func (r *Reader) saveKernel(s *savedKernel) {
	if r.kernel == nil {
		*s = savedKernel{}
		return
	}
	k := r.kernel.Named()
	s.At, s.Release, s.ID, s.Open = r.kernelAt, k.Release, k.digits, r.kernel.Release == ""
	s.Fault, s.FaultAt, s.EntryAt = r.fault, 0, r.entryAt
	if r.fault != "" {
		s.FaultAt = r.faultAt
	}
}

// setKernel makes r remember s.
func (r *Reader) setKernel(s *savedKernel) {
	r.kernel, r.kernelAt = nil, s.At
	r.fault, r.faultAt, r.entryAt = s.Fault, s.FaultAt, s.EntryAt
	if s.At == 0 {
		return
	}
	r.kernel = &Kernel{}
	if isRelease([]byte(s.Release)) {
		r.kernel.Release = s.Release
		r.kernel.ID, _ = buildid.Parse([]byte(s.ID))
		r.kernel.digits = r.kernel.ID.String()
	}
	if s.Open && r.kernel.Release != "" {
		r.kernel = &Kernel{before: r.kernel}
	}
}
