package input

import (
	"testing"
	"time"
)

func TestTimesOfRecords(t *testing.T) {
	for _, tt := range []struct {
		format Format
		record string
		want   string // empty: unknown
	}{
		{CRI, "2026-11-20T10:00:00.123456789Z stdout F text\n", "2026-11-20T10:00:00.123456789Z"},
		{CRI, "2026-11-20T12:00:00.5+02:00 stderr P text\n", "2026-11-20T10:00:00.5Z"},
		{CRI, "2026-13-20T10:00:00.5Z stdout F text\n", ""},
		{CRI, "text\n", ""},
		{Docker, `{"log":"\"time\":\"2020\"\n","stream":"stdout","time":"2026-11-20T10:00:00.123456789Z"}` + "\n", "2026-11-20T10:00:00.123456789Z"},
		{Docker, `{"log":"text\n","stream":"stdout"}` + "\n", ""},
		{Docker, `{"log":"text\n","time":"2026-11-20T10:`, ""},
		{Journal, "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1763632800123456\nMESSAGE=text\n\n", "2025-11-20T10:00:00.123456Z"},
		{Journal, "__CURSOR=s=1\nMESSAGE=text\n\n", ""},
		{Journal, "__CURSOR=s=1\n__REALTIME_TIMESTAMP=99999999999999999999\n\n", ""},
		{JSON, `{"__REALTIME_TIMESTAMP":"1763632800123456","MESSAGE":"text"}` + "\n", "2025-11-20T10:00:00.123456Z"},
		{JSON, `{"message":"text"}` + "\n", ""},
		{Markup, "2026-11-20T10:00:00.123456789Z stdout F text\n", ""},
	} {
		got := ""
		if at := loggedAt(tt.format, []byte(tt.record)); !at.IsZero() {
			got = at.UTC().Format(time.RFC3339Nano)
		}
		if got != tt.want {
			t.Errorf("%v %q: got %q, want %q", tt.format, tt.record, got, tt.want)
		}
	}
}
