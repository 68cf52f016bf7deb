package batch

import (
	"context"
	"io"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/symbolize"
)

// MaxFrames bounds the frames in a request of Symbolize.
const MaxFrames = 10_000

// Symbols looks up the addresses of one request. Its Room bounds the memory of the request.
type Symbols struct {
	Symbolizer *symbolize.Symbolizer
	// Complete returns the only build ID that begins with prefix, or zero.
	Complete func(prefix buildid.ID) buildid.ID
	Room     Room

	completed map[buildid.ID]buildid.ID // what Complete has returned, by prefix
}

// Symbolize answers a request of the form
//
//	{"frames": [{"build_id": "da43…", "offset": "0x3fa6", "return_address": true}, …]}
//
// symbolize.schema.json is its schema. The returned function writes the answer,
// {"v": 1, "frames": […]}, with one element for each frame of the request. An element is an object
// with frames, as --output=json prints them, a reason, or both.
func Symbolize(ctx context.Context, s *Symbols, body io.Reader) (func(io.Writer) error, error) {
	locations, err := readFrames(NewReader(body, s.Room), s.Room)
	if err != nil {
		return nil, err
	}
	answers, err := s.Look(ctx, locations)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		o := NewWriter(w)
		o.Line()
		o.Array("frames")
		for i := range answers {
			a := &answers[i]
			o.Item()
			if len(a.Frames) > 0 {
				o.Frames(a.Frames)
			}
			o.Optional("reason", string(a.Reason))
			o.EndObject()
			if err := o.Flush(false); err != nil {
				return err
			}
		}
		o.EndArray()
		o.EndLine()
		return o.Flush(true)
	}, nil
}

func readFrames(r *Reader, room Room) (all []symbolize.Location, err error) {
	given := false
	err = r.Object(func(name string) error {
		if name != "frames" {
			return Invalidf("unknown member; a request has only the member frames")
		}
		given = true
		return r.Array(func() error {
			if len(all) == MaxFrames {
				return TooLargef("the request has more than %d frames; send it in several requests", MaxFrames)
			}
			if !room.Take(addressBytes) {
				return ErrNoRoom
			}
			l, err := readFrame(r)
			all = append(all, l)
			return err
		})
	})
	if err == nil {
		err = r.End()
	}
	if err == nil && !given {
		err = Invalidf("the request has no frames")
	}
	return all, err
}

func readFrame(r *Reader) (l symbolize.Location, err error) {
	returns, offset := false, false
	err = r.Object(func(name string) (err error) {
		switch name {
		case "build_id":
			l.ID, err = r.BuildID()
		case "offset":
			offset = true
			l.Addr, err = r.Uint()
		case "return_address":
			returns, err = r.Bool()
		default:
			err = Invalidf("unknown member; a frame has build_id, offset and return_address")
		}
		return err
	})
	switch {
	case err != nil:
	case l.ID.IsZero():
		err = Invalidf("the frame has no build_id")
	case !offset:
		err = Invalidf("the frame has no offset")
	case returns && l.Addr > 0:
		l.Addr-- // the call ends there, and the next line may begin
	}
	return l, err
}

// BuildID reads a string with the hex digits of a build ID.
func (r *Reader) BuildID() (buildid.ID, error) {
	text, err := r.Text()
	if err != nil {
		return buildid.ID{}, err
	}
	id, err := buildid.Parse([]byte(strings.TrimSpace(text)))
	if err != nil {
		return id, Invalidf("%.80q is not a build ID in hex", text)
	}
	return id, nil
}

// flushBytes is the number of buffered bytes from which [Writer.Flush] writes.
const flushBytes = 32 << 10

// A Writer is a [jsonout.Buffer] that is written in parts.
type Writer struct {
	jsonout.Buffer
	w io.Writer
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Flush writes the appended JSON, if last is true or the buffer is large enough.
func (w *Writer) Flush(last bool) error {
	if len(w.Buffer) < flushBytes && !last {
		return nil
	}
	n := len(w.Buffer)
	if !last {
		n-- // the last byte decides whether a comma follows
	}
	_, err := w.w.Write(w.Buffer[:n])
	w.Buffer = append(w.Buffer[:0], w.Buffer[n:]...)
	return err
}
