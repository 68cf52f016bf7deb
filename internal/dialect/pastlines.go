package dialect

import "bytes"

// A history records which lines of the log its Reader has read, by line numbers. It gives access to
// earlier lines.
type history struct {
	// Past, if not nil, returns the last n lines before the current one, with their line ends. It
	// may return more or fewer lines.
	Past func(n int64) []byte

	// RawPast is Past with lines that may still have their envelopes, such as JSON strings. If it
	// is nil, Past is used.
	RawPast func(n int64) []byte

	number  int64 // number of the current line
	readTo  int64 // last line read
	pastAt  int64 // current line when earlier lines were last read
	frameAt int64 // the last line with a frame
	inPast  bool  // lines before the current one are being searched for headers
	asked   int   // number of reads of earlier lines by grammars
	// number of calls of readPast, including calls that had nothing to read
	searched int
}

func (h *history) reset() { h.number, h.readTo, h.pastAt, h.frameAt = -1, -1, -1, -1 }

// lastLines returns the last n lines before the current one, without colours.
func (h *history) lastLines(n int64) []byte {
	h.asked++
	return WithoutColors(h.Past(n))
}

// unread returns the number of lines between the line numbered to and the current line that are
// still unread. Such lines were read neither by the Reader nor in a search for headers.
func (h *history) unread(to int64) int64 { return h.number - max(h.pastAt-1, h.readTo, to) - 1 }

// follows reports whether the previous line has a frame, or meets the given condition.
func (h *history) follows(is func(b []byte) bool) bool {
	h.asked++
	if h.frameAt == h.number-1 {
		return true
	}
	before := h.before()
	return len(before) <= maxLine && is(before)
}

// before returns the previous line without its end, or nil.
func (h *history) before() []byte {
	if h.Past == nil {
		return nil
	}
	past := bytes.TrimRight(h.lastLines(1), "\r\n")
	return past[bytes.LastIndexByte(past, '\n')+1:]
}

// addressBefore reports whether the previous line ends with an address in brackets at start. All
// frames of a statically linked program have this form.
func (h *history) addressBefore(start int) bool {
	if h.Past == nil {
		return false
	}
	before := bytes.TrimRight(h.lastLines(1), " \t\r\n")
	digits := hexBefore(before, max(0, len(before)-len("]")))
	return endsWith(before, len(before), "]") && endsWith(before, digits, "[0x") && digits-len("[0x") == start
}

// lineBeforeHas reports whether the previous line contains this text.
func (h *history) lineBeforeHas(text string) bool {
	if h.Past == nil {
		return false
	}
	past := bytes.TrimRight(h.lastLines(1), "\r\n")
	return bytes.Contains(past[bytes.LastIndexByte(past, '\n')+1:], []byte(text))
}
