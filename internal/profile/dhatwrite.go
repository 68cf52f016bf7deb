package profile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
)

// rewrite prints the file with names. If calls were inlined and the file is whole, stacks get
// frames for these calls. All frames then get new numbers in the order of the stacks, as in
// DHAT. All other bytes stay the same.
func (x *dhatIndex) rewrite(w io.Writer) error {
	if err := x.file.rewind(); err != nil {
		return err
	}
	out := &dhatWriter{x: x, w: buffered(w), numbers: make([][]uint32, len(x.frames))}
	if x.expands && x.mayRenumber() {
		out.table = make(map[string]uint32)
		if _, err := out.numbersOf(0); err != nil { // the root, which is in no stack
			return err
		}
	}
	out.scan.part = out.part
	if err := out.scan.scan(x.file); err != nil {
		return err
	}
	out.reportDropped()
	return out.w.Flush()
}

// A dhatWriter prints a DHAT file with names, while it reads the file a second time.
type dhatWriter struct {
	x    *dhatIndex
	w    *bufio.Writer
	scan dhatScanner

	// row of each text in the new table; nil if the old table stays
	table map[string]uint32
	texts []string // the new table
	// new numbers, by old number; nil before the first stack with the frame
	numbers [][]uint32

	row     int  // row of the next text in the old table
	inTable bool // the writer is in the old table, which a new one replaces
	stack   []uint32
	b       []byte
	dropped int // frames of inlined calls left out
}

func (out *dhatWriter) part(p dhatPart, b []byte) error {
	switch {
	case p == dhatStack && out.table != nil:
		return out.writeStack(b)
	case p == dhatFrame:
		out.row++
		if out.table == nil {
			return out.writeRow(out.row-1, b)
		}
		out.inTable = true
		return nil
	case p == dhatTableEnd && out.table != nil:
		out.inTable = false
		if err := out.writeTable(); err != nil {
			return err
		}
	case out.inTable:
		return nil
	}
	_, err := out.w.Write(b)
	return err
}

// writeRow prints a text of the old table with the name of the physical function. It leaves out
// inlined calls, since a row is only one frame of the stacks.
func (out *dhatWriter) writeRow(row int, b []byte) error {
	if row < len(out.x.frames) {
		if texts := out.x.texts(row); len(texts) > 0 {
			out.dropped += len(texts) - 1
			b = append(append(append(out.b[:0], '"'), texts[len(texts)-1]...), '"')
			out.b = b
		}
	}
	_, err := out.w.Write(b)
	return err
}

// texts returns the texts that replace a frame, innermost first, as JSON without quotation
// marks. It returns none if the frame keeps its text.
func (x *dhatIndex) texts(row int) []string {
	f := &x.frames[row]
	if len(f.frames) == 0 {
		return nil
	}
	texts := x.spelling.appendFrames(nil, &f.named)
	for i, text := range texts {
		b, _ := escape.AppendString(nil, text)
		texts[i] = string(b[1 : len(b)-1])
	}
	return texts
}

// numbersOf returns the new numbers of frame n: of its inlined calls, then of the frame itself.
// It adds new texts to the table.
func (out *dhatWriter) numbersOf(n uint32) ([]uint32, error) {
	if out.numbers[n] != nil {
		return out.numbers[n], nil
	}
	texts := out.x.texts(int(n))
	if len(texts) == 0 {
		texts = []string{out.x.frames[n].text}
	}
	size := 0
	for _, text := range texts {
		k, ok := out.table[text]
		if !ok {
			k = uint32(len(out.texts))
			out.table[text] = k
			out.texts = append(out.texts, text)
			size += tableSize + len(text)
		}
		out.numbers[n] = append(out.numbers[n], k)
	}
	return out.numbers[n], out.x.m.take(size)
}

const tableSize = 96 // bytes of memory for a text that replaces a frame, without the text

// writeStack prints a stack with new numbers.
func (out *dhatWriter) writeStack(text []byte) error {
	out.stack, _ = parseStack(out.stack[:0], text)
	between := byte('[')
	for _, n := range out.stack {
		if int(n) >= len(out.x.frames) {
			return errChanged
		}
		numbers, err := out.numbersOf(n)
		if err != nil {
			return err
		}
		out.b = out.b[:0]
		for _, k := range numbers {
			out.b = strconv.AppendUint(append(out.b, between), uint64(k), 10)
			between = ','
		}
		if _, err := out.w.Write(out.b); err != nil {
			return err
		}
	}
	if between == '[' {
		out.w.WriteByte(between)
	}
	return out.w.WriteByte(']')
}

// errChanged reports that the file changed between its two reads.
var errChanged = errors.New("the file was changed while it was read")

// writeTable prints the new table. Frames in no stack come last.
func (out *dhatWriter) writeTable() error {
	for n := range out.x.frames {
		if _, err := out.numbersOf(uint32(n)); err != nil {
			return err
		}
	}
	for i, text := range out.texts {
		if i > 0 {
			out.w.WriteString(out.x.between())
		}
		out.w.WriteByte('"')
		out.w.WriteString(text)
		out.w.WriteByte('"')
	}
	out.w.WriteString(out.x.after) // w keeps its first error
	return nil
}

// reportDropped reports inlined calls that are not in the output.
func (out *dhatWriter) reportDropped() {
	if out.dropped > 0 {
		out.x.o.Report(fmt.Sprintf("inlined calls are left out (%d), since stacks cannot be changed in an incomplete file", out.dropped))
	}
}
