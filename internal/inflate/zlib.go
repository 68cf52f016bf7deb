package inflate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"runtime/debug"

	"github.com/symfilter/symfilter/internal/pagefault"
)

// ErrCorrupt is wrapped by errors for data that is not a zlib stream of the given size.
var ErrCorrupt = errors.New("corrupt zlib stream")

// Slack is the number of bytes after the output that Zlib needs in its buffer and may overwrite.
const Slack = 3 + maxMatch + 16

const (
	maxMatch  = 258
	inputSize = 256 << 10 // bytes read at a time
	inputRoom = 64        // bytes that one round of the decoder may look ahead

	populateAhead = 4 << 20 // bytes made present ahead of the decoder; a damaged stream wastes them
	populateStep  = 1 << 20 // bytes made present at a time; decoding them takes 2 ms
)

// Zlib decompresses the stream of r into the first size bytes of buf, which must have room for
// Slack more. The stream must hold exactly size bytes, and its checksum must be right. Zlib may
// read bytes after the stream from r.
//
// Zlib starts a goroutine that reads buf, and returns after its end. A fault at an unreadable
// address becomes an error; any other panic of the goroutine becomes a panic of Zlib. Other errors
// wrap [ErrCorrupt] or [io.ErrUnexpectedEOF], come from r, or report that buf is too small.
//
// populate, if not nil, makes the pages of a part of buf present. The goroutine calls it, in order,
// for the next part of the output. So page faults cost the decoder no time if another processor is
// free.
func Zlib(buf []byte, size int, r io.Reader, populate func([]byte)) error {
	if size < 0 || len(buf) < size || len(buf)-size < Slack {
		return fmt.Errorf("inflate: the buffer has %d bytes, but needs %d, and %d spare bytes", len(buf), size, Slack)
	}
	d := &decoder{r: r, out: buf[:size+Slack], size: size, in: make([]byte, inputSize+inputRoom)}
	d.in = d.in[:0]
	if err := d.fill(); err != nil {
		return err
	}
	head := d.in
	if d.end < 2 || head[0]&0x0f != 8 || head[0]>>4 > 7 || (uint(head[0])<<8|uint(head[1]))%31 != 0 || head[1]&0x20 != 0 {
		if d.end < 2 && d.eof {
			return io.ErrUnexpectedEOF
		}
		return corrupt("no zlib header")
	}
	d.pos = 2

	// The goroutine computes the checksum of the decoder's output so far.
	sums := adler32.New()
	progress := make(chan int, 1024)
	summed := make(chan struct{})
	var broken any // the panic of the goroutine
	go func() {
		defer close(summed)
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // buf may be a mapped file
		defer func() {
			if broken = recover(); broken != nil {
				for range progress { // drain: the decoder must not block
				}
			}
		}()
		from, present := 0, 0
		for to := range progress {
			for populate != nil && present < min(to+populateAhead, size) {
				end := min(present+populateStep, size)
				populate(buf[present:end])
				present = end
			}
			sums.Write(buf[from:to])
			from = to
		}
	}()
	err := func() error {
		defer func() {
			close(progress)
			<-summed
		}()
		return d.stream(progress)
	}()
	if broken != nil && !pagefault.Is(broken) {
		panic(broken)
	}
	if err != nil {
		return err
	}
	if d.done != size {
		return corrupt(fmt.Sprintf("ends after %d of %d bytes", d.done, size))
	}
	want, err := d.trailer()
	if err != nil {
		return err
	}
	if broken != nil {
		return errors.New("inflate: the buffer cannot be read")
	}
	if got := sums.Sum32(); got != want {
		return corrupt(fmt.Sprintf("checksum %08x, want %08x", got, want))
	}
	return nil
}

func corrupt(said string) error { return fmt.Errorf("%w: %s", ErrCorrupt, said) }

// A decoder is the state of a decompression between two blocks.
type decoder struct {
	r    io.Reader
	in   []byte // input; once it has ended, inputRoom zeros follow
	end  int    // bytes of in that are input
	pos  int    // index in in of the next byte to take bits from
	eof  bool
	bits uint64 // bits taken from in and not used yet; the lowest is next
	n    uint   // number of valid bits; higher bits hold the next input, or zeros

	out  []byte
	size int
	done int

	isFixed   bool // the tables are for fixed codes
	literals  [1 << 13]uint32
	distances [1 << 12]uint32
}

// fill reads more input. It keeps the unused bytes before the new ones.
func (d *decoder) fill() error {
	if d.eof {
		if d.pos > d.end+8 {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	buf := d.in[:inputSize+inputRoom]
	back := min(d.pos, 8) // align moves back to the unused bytes that bits holds
	keep := copy(buf, d.in[d.pos-back:d.end])
	n, err := io.ReadFull(d.r, buf[keep:inputSize])
	d.pos, d.end = back, keep+n
	switch err {
	case nil:
		d.in = buf[:d.end]
	case io.EOF, io.ErrUnexpectedEOF:
		d.eof = true
		d.in = buf[:d.end+inputRoom]
		clear(d.in[d.end:])
	default:
		return err
	}
	return nil
}

// stream decodes all blocks. At intervals and at the end, it sends the number of decoded bytes to
// progress.
func (d *decoder) stream(progress chan<- int) error {
	const step = 128 << 10 // bytes between two messages
	said := 0
	for {
		if err := d.need(); err != nil {
			return err
		}
		d.refill()
		last, kind := d.bits&1 != 0, d.bits>>1&3
		d.use(3)
		var err error
		switch kind {
		case 0:
			err = d.stored()
		case 1:
			d.fixed()
			err = d.block()
		case 2:
			if err = d.dynamic(); err == nil {
				err = d.block()
			}
		default:
			err = corrupt("a block of unknown kind")
		}
		if err != nil {
			return err
		}
		if d.done-said >= step || last {
			progress <- d.done
			said = d.done
		}
		if last {
			return nil
		}
	}
}

// need ensures that in has enough input for a round of the decoder.
func (d *decoder) need() error {
	if d.pos > len(d.in)-inputRoom {
		return d.fillOrFail()
	}
	return nil
}

// fillOrFail reads more input, as fill does. It also fails if the decoder has used more bytes than
// the input has.
func (d *decoder) fillOrFail() error {
	if err := d.fill(); err != nil {
		return err
	}
	if d.pos > len(d.in)-8 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// refill takes input until bits has at least 56 valid bits.
func (d *decoder) refill() {
	d.bits |= binary.LittleEndian.Uint64(d.in[d.pos:]) << (d.n & 63)
	d.pos += int(63-d.n) >> 3
	d.n |= 56
}

func (d *decoder) use(n uint) {
	d.bits >>= n & 63
	d.n -= n
}

// align drops the rest of a partly used byte, and gives whole unused bytes back to in.
func (d *decoder) align() error {
	d.pos -= int(d.n >> 3)
	d.bits, d.n = 0, 0
	if d.pos > d.end {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// stored copies a block that is not compressed.
func (d *decoder) stored() error {
	if err := d.align(); err != nil {
		return err
	}
	if d.end-d.pos < 4 {
		if err := d.fill(); err != nil {
			return err
		}
		if d.end-d.pos < 4 {
			return io.ErrUnexpectedEOF
		}
	}
	n, check := binary.LittleEndian.Uint16(d.in[d.pos:]), binary.LittleEndian.Uint16(d.in[d.pos+2:])
	if n != ^check {
		return corrupt("the length of a stored block is not valid")
	}
	d.pos += 4
	left := int(n)
	if left > d.size-d.done {
		return corrupt("more bytes than expected")
	}
	for left > 0 {
		if d.pos == d.end {
			if err := d.fill(); err != nil {
				return err
			}
			if d.pos == d.end {
				return io.ErrUnexpectedEOF
			}
		}
		n := copy(d.out[d.done:d.done+left], d.in[d.pos:d.end])
		d.pos, d.done, left = d.pos+n, d.done+n, left-n
	}
	return nil
}

func (d *decoder) trailer() (uint32, error) {
	if err := d.align(); err != nil {
		return 0, err
	}
	if d.end-d.pos < 4 {
		if err := d.fill(); err != nil {
			return 0, err
		}
		if d.end-d.pos < 4 {
			return 0, io.ErrUnexpectedEOF
		}
	}
	return binary.BigEndian.Uint32(d.in[d.pos:]), nil
}
