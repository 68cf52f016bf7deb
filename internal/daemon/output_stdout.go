package daemon

import (
	"context"
	"io/fs"
	"log/slog"
	"os"

	"github.com/symfilter/symfilter/internal/written"
)

// A stdoutOutput writes to standard output. A full pipe does not block a reload or the end of the
// daemon. If a pipe has lost its reader, the write is retried, as on a full disk.
type stdoutOutput struct {
	persistent
	f       *os.File
	regular bool
	syncs   string
	left    func() (int64, bool) // written.Unread of the output; nil: unknown

	turns turns
	line  lineEnd
	begun bool
}

func newStdoutOutput(f *os.File, syncs string, log *slog.Logger) *stdoutOutput {
	o := &stdoutOutput{persistent: persistent{log: log}, f: f, syncs: syncs, turns: newTurns(), left: written.Unread(f)}
	if info, err := f.Stat(); err == nil {
		o.regular = info.Mode()&fs.ModeType == 0
	}
	return o
}

func (o *stdoutOutput) write(ctx context.Context, from *session, p []byte) (done int, err error) {
	first, err := o.turns.takeFor(ctx, &o.line, from)
	if err != nil {
		return 0, err
	}
	defer o.turns.give()
	if !o.begun && written.IsTorn(o.f) {
		first = newline
	}
	o.begun = true
	err = o.insist(ctx, func() error {
		for len(first) > 0 {
			n, err := writeSome(ctx, o.f, o.regular, first)
			if first = first[n:]; err != nil {
				return err
			}
		}
		for done < len(p) {
			n, err := writeSome(ctx, o.f, o.regular, p[done:])
			o.line.wrote(from, p[done:done+n])
			if done += n; err != nil {
				return err
			}
		}
		if o.regular && o.syncs == "always" {
			return o.f.Sync()
		}
		return nil
	})
	return done, err
}

func (o *stdoutOutput) unread() (int64, bool) { return o.left() }

func (o *stdoutOutput) sync() error {
	if !o.regular || o.syncs == "never" {
		return nil
	}
	return o.f.Sync()
}

func (o *stdoutOutput) owns(info os.FileInfo) bool {
	own, err := o.f.Stat()
	return err == nil && o.regular && os.SameFile(own, info)
}

func (*stdoutOutput) reopen() error { return nil }
func (*stdoutOutput) close() error  { return nil }
