package dialect

import "github.com/symfilter/symfilter/buildid"

// A savedKernel is the JSON form of a kernelLog.
type savedKernel struct {
	// number of the line that named the kernel, or else of the line with its first frame; 0: no
	// kernel is known
	At      int64  `json:"at"`
	Release string `json:"release,omitempty"` // release last named in the log
	ID      string `json:"id,omitempty"`
	Open    bool   `json:"open,omitempty"`  // a report has begun but not named its kernel yet
	Fault   string `json:"fault,omitempty"` // last function named as the location of an instruction
	FaultAt int64  `json:"fault_at,omitempty"`
	// last line with a function that saves the registers of stopped code
	EntryAt int64 `json:"entry_at,omitempty"`
}

func (n *kernelLog) save(s *savedKernel) {
	if n.named == nil {
		*s = savedKernel{}
		return
	}
	k := n.named.Named()
	s.At, s.Release, s.ID, s.Open = n.at, k.Release, k.digits, n.named.Release == ""
	s.Fault, s.FaultAt, s.EntryAt = n.fault, 0, n.entryAt
	if n.fault != "" {
		s.FaultAt = n.faultAt
	}
}

func (n *kernelLog) restore(s *savedKernel) {
	n.named, n.at = nil, s.At
	n.fault, n.faultAt, n.entryAt = s.Fault, s.FaultAt, s.EntryAt
	if s.At == 0 {
		return
	}
	n.named = &Kernel{}
	if isRelease([]byte(s.Release)) {
		n.named.Release = s.Release
		n.named.ID, _ = buildid.Parse([]byte(s.ID))
		n.named.digits = n.named.ID.String()
	}
	if s.Open && n.named.Release != "" {
		n.named = &Kernel{before: n.named}
	}
}
