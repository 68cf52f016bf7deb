package inflate

import "encoding/binary"

func (d *decoder) block() error {
	const literalMask, distanceMask = 1<<literalBits - 1, 1<<distanceBits - 1
	in, out, size := d.in, d.out, d.size
	pos, done, bits, n := d.pos, d.done, d.bits, d.n
	literals, distances := &d.literals, &d.distances
	for {
		if pos > len(in)-inputRoom {
			d.pos = pos
			if err := d.fillOrFail(); err != nil {
				return err
			}
			in, pos = d.in, d.pos
		}
		if done > size {
			return corrupt("more bytes than expected")
		}
		bits |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
		pos += int(63-n) >> 3
		n |= 56
		e := literals[bits&literalMask]
		if e&literalFlag != 0 {
			// Two more symbols need no check: bits and the Slack of out suffice for them.
			bits >>= e & 63
			n -= uint(e & 63)
			out[done] = byte(e >> 16)
			done++
			e = literals[bits&literalMask]
			if e&literalFlag != 0 {
				bits >>= e & 63
				n -= uint(e & 63)
				out[done] = byte(e >> 16)
				done++
				e = literals[bits&literalMask]
				if e&literalFlag != 0 {
					bits >>= e & 63
					n -= uint(e & 63)
					out[done] = byte(e >> 16)
					done++
					continue
				}
			}
			bits |= binary.LittleEndian.Uint64(in[pos:]) << (n & 63)
			pos += int(63-n) >> 3
			n |= 56
		}
		if e&specialFlag != 0 {
			if e&furtherFlag != 0 {
				bits >>= e & 63
				n -= uint(e & 63)
				e = literals[(e>>16&0x1fff+uint32(bits)&(1<<(e>>8&15)-1))&(1<<13-1)]
				if e&literalFlag != 0 {
					bits >>= e & 63
					n -= uint(e & 63)
					out[done] = byte(e >> 16)
					done++
					continue
				}
			}
			if e&specialFlag != 0 {
				if e&endFlag == 0 {
					return corrupt("a reserved symbol")
				}
				d.pos, d.done, d.bits, d.n = pos, done, bits>>(e&63), n-uint(e&63)
				if done > size {
					return corrupt("more bytes than expected")
				}
				return nil
			}
		}
		if e == 0 {
			return corrupt("bits that are not a symbol")
		}
		length := int(e>>16) + int(uint32(bits&(1<<(e&63)-1))>>(e>>8&15))
		bits >>= e & 63
		n -= uint(e & 63)

		// A length took at most 20 of 56 bits. A distance takes at most 28.
		e = distances[bits&distanceMask]
		if e&farFlag != 0 {
			bits >>= e & 63
			n -= uint(e & 63)
			e = distances[(e>>16&0x7fff+uint32(bits)&(1<<(e>>8&15)-1))&(1<<12-1)]
		}
		if e == 0 {
			return corrupt("bits that are not a distance")
		}
		distance := int(e>>16&0x7fff) + int(uint32(bits&(1<<(e&63)-1))>>(e>>8&15))
		bits >>= e & 63
		n -= uint(e & 63)
		if distance > done {
			return corrupt("a distance that reaches before the first byte")
		}
		from := done - distance
		if distance >= 8 {
			// Copy eight bytes at a time, up to seven more than length. Later output overwrites
			// them.
			src, dst := out[from:done+length+8], out[done:done+length+8]
			for i := 0; i < length; i += 8 {
				binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i:]))
			}
		} else {
			src, dst := out[from:done+8], out[done:done+length+8]
			for i := range 8 {
				dst[i] = src[i]
			}
			// The pattern repeats at each multiple of the distance. Use the first multiple of at
			// least eight bytes.
			far := distance * ((7 + distance) / distance)
			src = out[max(done-far, 0):]
			skip := max(far-done, 0)
			for i := 8; i < length; i += 8 {
				binary.LittleEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i-skip:]))
			}
		}
		done += length
	}
}
