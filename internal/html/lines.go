package html

import "bytes"

// Lines prints whole lines of the log, as Text does. Their line ends are "\n" or "\r\n".
func (p *Page) Lines(lines []byte) {
	for len(lines) > 0 {
		if p.large && !p.cut {
			if n := p.plainLines(lines[:min(len(lines), blockSize)]); n > 0 {
				lines = lines[n:]
				continue
			}
		}
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		p.Text(bytes.TrimSuffix(line, []byte{'\r'}), true)
		lines = rest
	}
}

// plainLines adds the whole lines at the beginning of b that a chunk keeps unchanged, as it does
// most lines. It returns their length in bytes.
func (p *Page) plainLines(b []byte) int {
	n := bytes.LastIndexByte(b[:printableLines(b)], '\n') + 1
	if n > 0 {
		p.line += int64(bytes.Count(b[:n], []byte{'\n'}))
		p.chunk.add(append(p.chunk.begin(), b[:n]...), false)
		p.grown()
	}
	return n
}
