package input

import (
	"bytes"
	"strconv"
	"time"
)

// loggedAt returns the time in a record, which is a line of the log or a journal entry. It returns
// the zero time if the record has no valid time.
func loggedAt(format Format, record []byte) time.Time {
	switch format {
	case CRI:
		return parseTime(record[:timestamp(record)])
	case Docker:
		return parseTime(lastMember(record, `"time":"`))
	case Journal:
		if _, after, ok := bytes.Cut(record, []byte(journalRealtime+"=")); ok {
			value, _, _ := bytes.Cut(after, newline)
			return microseconds(value)
		}
	case JSON: // output of journalctl -o json
		return microseconds(lastMember(record, `"`+journalRealtime+`":"`))
	}
	return time.Time{}
}

// lastMember returns the text in record from the last occurrence of begin to the next quote, or nil
// if begin does not occur.
func lastMember(record []byte, begin string) []byte {
	i := bytes.LastIndex(record, []byte(begin))
	if i < 0 {
		return nil
	}
	value, _, _ := bytes.Cut(record[i+len(begin):], []byte{'"'})
	return value
}

func parseTime(text []byte) time.Time {
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return time.Time{}
	}
	return at
}

func microseconds(digits []byte) time.Time {
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(n)
}
