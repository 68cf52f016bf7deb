package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/symfilter/symfilter/internal/stacks"
)

// Limits of a DHAT file's table of frames.
const (
	maxDHATFrames = 1 << 18 // frames; 20,000 in the file of a large program
	maxInlined    = 128     // calls inlined at one address
	entrySize     = 320     // bytes of a frame in memory, without its texts
)

// isDHAT reports whether head is the beginning of a DHAT file.
func isDHAT(head []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"dhatFileVersion"`))
}

// readDHAT reads the frame table of a DHAT file, and the calls in its stacks.
func readDHAT(f *traceFile, o *Options, m *memory) (document, error) {
	x := &dhatIndex{file: f, o: o, m: m}
	x.scan.part = x.learn
	if err := x.scan.scan(f); err != nil {
		return nil, err
	}
	x.isWhole = x.scan.isWhole()
	x.reportDefects()
	return x, nil
}

// A dhatIndex holds the frames of a DHAT file, and the calls between them.
type dhatIndex struct {
	file     *traceFile
	o        *Options
	m        *memory
	scan     dhatScanner
	spelling spelling

	version, command, mode string
	bytes, blocks          string // names of the units, if the file has them
	lifetimes              bool   // program points have counts at the peak and at the end

	frames    []dhatFrameInfo
	inner     []uint32 // by frame: 1 + number of the frame that it called first; 0 if none
	separator string   // text between the first two texts of the table
	after     string   // text after the last frame of the table

	inTable  bool
	hasTable bool // the table of frames has ended
	isWhole  bool
	foreign  int // stacks of program points that are not arrays of numbers
	left     int // frames beyond maxDHATFrames
	stack    []uint32
	expands  bool            // a frame of the table has inlined calls
	profile  *stacks.Profile // nil before stacks
}

type dhatFrameInfo struct {
	named
	text    string // as in the file: JSON without quotation marks
	isFrame bool   // raw is set
	inlined bool   // a call inlined into a frame with the same address
}

// learn adds a part of the file to the index.
func (x *dhatIndex) learn(p dhatPart, b []byte) error {
	switch p {
	case dhatMember:
		x.learnMember(b)
	case dhatStack:
		return x.learnStack(b)
	case dhatFrame:
		x.inTable, x.after = true, ""
		return x.learnFrame(b)
	case dhatTableEnd:
		x.inTable, x.hasTable = false, true
	case dhatText:
		if x.inTable {
			x.after += string(b[:min(len(b), maxSeparator-len(x.after))])
			if len(x.frames) == 1 {
				x.separator = x.after
			}
		}
	}
	return nil
}

func (x *dhatIndex) learnMember(value []byte) {
	text := ""
	if len(value) <= maxHeader {
		text = unquoted(value)
	}
	switch string(x.scan.key) {
	case "dhatFileVersion":
		x.version = text
	case "cmd":
		x.command = text
	case "mode":
		x.mode = text
	case "bklt":
		x.lifetimes = text == "true"
	case "bsu":
		x.bytes = text
	case "bksu":
		x.blocks = text
	}
}

// maxHeader bounds the bytes of the command and other texts about the run.
const maxHeader = 64 << 10

// maxSeparator bounds the bytes kept of the text between two frames, and after the last frame.
// DHAT writes three bytes between frames.
const maxSeparator = 64

// between returns the bytes to write between two texts of the new table: the file's own
// separator if it has a comma, or else a comma.
func (x *dhatIndex) between() string {
	if strings.ContainsRune(x.separator, ',') {
		return x.separator
	}
	return ","
}

// unquoted returns the text of a JSON value. Numbers and words are unchanged. An invalid text
// only loses its quotation marks.
func unquoted(value []byte) string {
	if value[0] != '"' {
		return string(value)
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value[1 : len(value)-1])
	}
	return text
}

// learnStack records the calls between frames in the stack of a program point.
func (x *dhatIndex) learnStack(text []byte) error {
	var ok bool
	if x.stack, ok = parseStack(x.stack[:0], text); !ok {
		x.foreign++
		return nil
	}
	inner := uint32(0)
	for _, n := range x.stack {
		if n >= maxDHATFrames {
			x.foreign++
			return nil
		}
		if int(n) >= len(x.inner) {
			if err := x.m.take((int(n) + 1 - len(x.inner)) * 8); err != nil {
				return err
			}
			x.inner = append(x.inner, make([]uint32, int(n)+1-len(x.inner))...)
		}
		if x.inner[n] == 0 {
			x.inner[n] = inner
		}
		inner = n + 1
	}
	return nil
}

// learnFrame adds a text of the table to frames. Beyond maxDHATFrames, texts are only counted.
func (x *dhatIndex) learnFrame(text []byte) error {
	if len(x.frames) == maxDHATFrames {
		x.left++
		return nil
	}
	if err := x.m.take(entrySize + 2*len(text)); err != nil {
		return err
	}
	f := dhatFrameInfo{text: string(text[1 : len(text)-1])}
	f.raw, f.isFrame = parseFrame([]byte(unquoted(text)))
	x.frames = append(x.frames, f)
	return nil
}

// called returns the number of the frame that frame i called, in the first stack with such a call;
// -1 if there is none.
func (x *dhatIndex) called(i int) int {
	if i < 0 || i >= len(x.inner) || int(x.inner[i]) > len(x.frames) {
		return -1
	}
	return int(x.inner[i]) - 1
}

// resolve locates the objects of the frames, and looks up the frames' names.
func (x *dhatIndex) resolve(*resolver) error {
	n := newNamer(x.o, x.m, x.command)
	defer n.close()
	x.teach(n)
	for i := range x.frames {
		f := &x.frames[i]
		if !f.isFrame {
			continue
		}
		if err := n.name(&f.named); err != nil {
			return err
		}
		x.expands = x.expands || len(f.frames) > 1
	}
	x.spelling = n.spelling
	return nil
}

// teach passes facts from the stacks to n: which frame each frame called, and which addresses are
// exact.
func (x *dhatIndex) teach(n *namer) {
	at := func(i int) uint64 { return x.frames[i].raw.Addr }
	for i := range x.frames {
		f, in := &x.frames[i], x.called(i)
		f.raw.Exact = in < 0 && (x.mode == "ad-hoc" || isExact(&f.raw))
		if in >= 0 && in != i && at(in) == at(i) {
			x.frames[in].inlined = true
		}
	}
	for i := range x.frames {
		f, in := &x.frames[i], x.called(i)
		n.spelling.learn(&f.raw)
		if !f.isFrame || f.inlined {
			continue
		}
		for range maxInlined { // skip the calls inlined into f
			if in < 0 || at(in) != at(i) {
				break
			}
			in = x.called(in)
		}
		if in < 0 {
			n.learn(&f.raw, nil)
		} else {
			n.learn(&f.raw, &x.frames[in].raw)
		}
	}
}

// reportDefects reports missing parts of the file, and deviations from DHAT's format.
func (x *dhatIndex) reportDefects() {
	beyond := max(0, len(x.inner)-len(x.frames))
	switch {
	case x.hasTable && beyond > 0:
		x.o.Report(fmt.Sprintf("stacks refer to frames up to number %d, but the last frame in the file is %d: missing frames have no name", len(x.inner)-1, len(x.frames)-1))
	case x.hasTable && !x.isWhole:
		x.o.Report("the file is cut off or damaged after its list of frames")
	case !x.isWhole && len(x.frames) == 0:
		x.o.Report("the file is cut off or damaged before its list of frames, which DHAT writes last: no frame gets a name")
	case !x.isWhole:
		x.o.Report(fmt.Sprintf("the file is cut off or damaged in its list of frames: %d of at least %d were read", len(x.frames), max(len(x.frames), len(x.inner))))
	case !x.hasTable:
		x.o.Report("the file has no list of frames: no frame gets a name")
	}
	if x.foreign > 0 {
		x.o.Report(fmt.Sprintf("stacks that are not lists of frame numbers are not changed (%d)", x.foreign))
	}
	if x.left > 0 {
		x.o.Report(fmt.Sprintf("the file has %d frames; frames after the first %d get no names", len(x.frames)+x.left, len(x.frames)))
	}
	if x.version != "" && x.version != "2" {
		x.o.Report(fmt.Sprintf("the file has version %.20q of DHAT's format, and is read as version 2, the only known version", x.version))
	}
}

// mayRenumber reports whether frames may get new numbers. The file must be whole, and all its
// stacks and frames known.
func (x *dhatIndex) mayRenumber() bool {
	return x.hasTable && x.isWhole && x.foreign == 0 && x.left == 0 && len(x.inner) <= len(x.frames)
}
