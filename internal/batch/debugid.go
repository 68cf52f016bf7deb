package batch

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"

	"github.com/symfilter/symfilter/buildid"
)

const (
	guidBytes = 16 // bytes of the GUID in a debug ID, which begin the build ID
	ageDigits = 8  // most hex digits of the age after the GUID
	fastBytes = 8  // bytes of a build ID by lld --build-id=fast
)

// DebugID returns the first 16 bytes of a build ID from a debug ID. Breakpad makes a debug ID of
// these bytes: a GUID, whose first three fields are little-endian, and an age in hex, 0 for ELF.
// Hyphens are allowed. ok is false for other text.
func DebugID(text string) (prefix [guidBytes]byte, ok bool) {
	digits := strings.ReplaceAll(text, "-", "")
	if n := len(digits); n < 2*guidBytes || n > 2*guidBytes+ageDigits {
		return prefix, false
	}
	if strings.Trim(digits[2*guidBytes:], "0123456789abcdefABCDEF") != "" {
		return prefix, false
	}
	if _, err := hex.Decode(prefix[:], []byte(digits[:2*guidBytes])); err != nil {
		return prefix, false
	}
	for _, field := range [][]byte{prefix[0:4], prefix[4:6], prefix[6:8]} {
		for i, j := 0, len(field)-1; i < j; i, j = i+1, j-1 {
			field[i], field[j] = field[j], field[i]
		}
	}
	return prefix, true
}

// Identify returns the build ID of an ELF module by its code ID, which is the build ID, or else by
// its debug ID. A debug ID has only the first 16 bytes of the build ID. Complete finds the rest in
// the trees of debug files. If it finds none, Identify returns a build ID of 16 bytes, or of 8 if
// only zeros follow. debugID may also be a build ID of more than 16 bytes. Identify returns zero if
// neither ID is valid.
//
// Complete reads folders. It is called once for a debug ID, and not after ctx is done.
func (s *Symbols) Identify(ctx context.Context, codeID, debugID string) (id buildid.ID) {
	if id, err := buildid.Parse([]byte(codeID)); err == nil && id.Len() > 1 {
		return id
	}
	if n := len(debugID); n > 2*guidBytes+1 && n%2 == 0 && !strings.Contains(debugID, "-") {
		if id, err := buildid.Parse([]byte(debugID)); err == nil {
			return id
		}
	}
	prefix, ok := DebugID(debugID)
	if !ok || prefix == [guidBytes]byte{} {
		return id
	}
	id, _ = buildid.FromBytes(prefix[:])
	if whole := s.complete(ctx, id); !whole.IsZero() {
		return whole
	}
	if bytes.Equal(prefix[fastBytes:], make([]byte, guidBytes-fastBytes)) {
		id, _ = buildid.FromBytes(prefix[:fastBytes])
	}
	return id
}

func (s *Symbols) complete(ctx context.Context, prefix buildid.ID) buildid.ID {
	whole, known := s.completed[prefix]
	if known || s.Complete == nil || ctx.Err() != nil {
		return whole
	}
	whole = s.Complete(prefix)
	if s.completed == nil {
		s.completed = make(map[buildid.ID]buildid.ID)
	}
	s.completed[prefix] = whole
	return whole
}
