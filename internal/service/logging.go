package service

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// A Format is a format of log records.
type Format string

const (
	Auto Format = "auto" // message and attributes for the journal, Text elsewhere
	Text Format = "text" // key=value, as in [slog.TextHandler]
	JSON Format = "json" // as in [slog.JSONHandler]
)

// A FormatVar is a Format that can be set while handlers use it, like a [slog.LevelVar]. Its zero
// value is [Auto].
type FormatVar struct{ v atomic.Pointer[Format] }

// Set sets the format of later records.
func (v *FormatVar) Set(f Format) { v.v.Store(&f) }

func (v *FormatVar) get() Format {
	if f := v.v.Load(); f != nil {
		return *f
	}
	return Auto
}

// NewHandler returns a handler that writes records of at least the given level to f, each with one
// write. In systemd's journal, each line begins with a priority of sd-daemon(3), such as <3>, which
// the journal removes. The handler is safe for concurrent use.
func NewHandler(f *os.File, format *FormatVar, level slog.Leveler) slog.Handler {
	return newHandler(f, format, level, isJournal(os.Getenv("JOURNAL_STREAM"), f))
}

// newHandler is NewHandler for any writer. journal is set if w leads to the journal.
func newHandler(w io.Writer, format *FormatVar, level slog.Leveler, journal bool) slog.Handler {
	h := &formatHandler{format: format, all: make(map[Format]slog.Handler)}
	for _, f := range []Format{Auto, Text, JSON} {
		h.all[f] = newFormatHandler(w, f, level, journal)
	}
	return h
}

// A formatHandler passes each record to the handler for the current format.
type formatHandler struct {
	format *FormatVar
	all    map[Format]slog.Handler
}

func (h *formatHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.all[h.format.get()].Enabled(ctx, level)
}

func (h *formatHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.all[h.format.get()].Handle(ctx, r)
}

func (h *formatHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.each(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

func (h *formatHandler) WithGroup(name string) slog.Handler {
	return h.each(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (h *formatHandler) each(change func(slog.Handler) slog.Handler) slog.Handler {
	changed := &formatHandler{format: h.format, all: make(map[Format]slog.Handler)}
	for f, inner := range h.all {
		changed.all[f] = change(inner)
	}
	return changed
}

func newFormatHandler(w io.Writer, format Format, level slog.Leveler, journal bool) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	plain := func(w io.Writer) slog.Handler {
		if format == JSON {
			return slog.NewJSONHandler(w, o)
		}
		return slog.NewTextHandler(w, o)
	}
	if !journal {
		return plain(w)
	}
	line := &line{w: w}
	h := &journalHandler{line: line}
	if format == Auto {
		h.message = true
		o.ReplaceAttr = withoutBuiltin
	}
	h.inner = plain(&line.buf)
	return h
}

// withoutBuiltin removes two attributes of a record that are written in other places: the level
// becomes the journal's priority, and the message precedes the attributes.
func withoutBuiltin(groups []string, a slog.Attr) slog.Attr {
	_, isLevel := a.Value.Any().(slog.Level)
	if len(groups) == 0 && (a.Key == slog.LevelKey && isLevel || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// A line is the buffer that all handlers of one writer share.
type line struct {
	mu  sync.Mutex
	buf bytes.Buffer
	w   io.Writer
}

// A journalHandler puts the priority of a record before its line.
type journalHandler struct {
	line    *line
	inner   slog.Handler // prints into line.buf
	message bool         // the message precedes the attributes
}

func (h *journalHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

func (h *journalHandler) Handle(ctx context.Context, r slog.Record) error {
	l := h.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
	l.buf.WriteString(priority(r.Level))
	if h.message {
		l.buf.WriteString(oneLine(r.Message))
		l.buf.WriteByte(' ')
		r.Time = time.Time{} // the journal has its own
	}
	if err := h.inner.Handle(ctx, r); err != nil {
		return err
	}
	text := l.buf.Bytes()
	if h.message { // without attributes, inner prints only a line break
		text = append(bytes.TrimRight(text, " \n"), '\n')
	}
	_, err := l.w.Write(text)
	return err
}

func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &journalHandler{h.line, h.inner.WithAttrs(attrs), h.message}
}

func (h *journalHandler) WithGroup(name string) slog.Handler {
	return &journalHandler{h.line, h.inner.WithGroup(name), h.message}
}

// priority returns the prefix of a level: LOG_ERR, LOG_WARNING, LOG_INFO or LOG_DEBUG.
func priority(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "<3>"
	case level >= slog.LevelWarn:
		return "<4>"
	case level >= slog.LevelInfo:
		return "<6>"
	default:
		return "<7>"
	}
}

// oneLine returns text with blanks for control characters. A line break would begin another entry
// of the journal, with any priority. In a message to the service manager, it would begin another
// assignment.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
