package lineage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
)

// A failingContent returns err for each read that begins at or after the offset in the field from.
type failingContent struct {
	*modelContent
	from int64
	err  error
}

func (c failingContent) ReadAt(p []byte, off int64) (int, error) {
	if off >= c.from {
		return 0, c.err
	}
	return c.modelContent.ReadAt(p, off)
}

// If a read fails, the search must be repeated, since the archive may have further lines. Only in a
// damaged archive, a failed read must count as its end.
func TestErrorsOfReadingAreNotTheEndOfAnArchive(t *testing.T) {
	text := bytes.Repeat([]byte("one line\n"), 100)
	plain := (&modelFile{ino: 1, data: text}).open(logPath)
	plain.seek(int64(len(text)))
	l := NewLog(logPath, NewRecords())
	l.Unpacks = true
	l.AddRead(MarkAt(plain.state, int64(len(text)), plain.state.Recent))
	packed := &modelFile{ino: 2, mtime: 1, packed: true, data: append(text, "another\n"...)}
	file := packed.at(logPath + ".1.gz")
	for _, test := range []struct {
		err      error // error of the read after the known lines
		damaged  bool
		archived bool
		want     error
	}{
		{io.EOF, false, true, nil},
		{errors.New("input/output error"), false, false, ErrLater},
		{errors.New("checksum"), true, true, nil},
	} {
		c := failingContent{packed.open(file.Path), int64(len(text)), test.err}
		c.state.Damaged = test.damaged
		_, archived, err := l.isArchived(context.Background(), &modelDisk{}, c, file, nil)
		if archived != test.archived || err != test.want {
			t.Errorf("%v: archived is %v, error %v", test.err, archived, err)
		}
		if _, more, err := l.takeRest(context.Background(), c, int64(len(text))); more || err != test.want {
			t.Errorf("%v: more is %v, error %v", test.err, more, err)
		}
	}
}
