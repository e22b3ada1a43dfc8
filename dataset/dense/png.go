package dense

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// pngReader reads the PNG files that most pictures are, in memory that is used again: eight bits a channel, color or
// gray, of the size that is wanted, without transparency. It reads no others, and none with anything wrong: these are
// for image/png, which says what that is. The format: www.w3.org/TR/png-3.
type pngReader struct {
	data     pngData
	unpacked io.ReadCloser // of data
	rows     []byte        // each with its filter before it
}

const pngMagic = "\x89PNG\r\n\x1a\n"

// read reads a file into a row of a data set, [channels height width], and says whether it could.
func (p *pngReader) read(file []byte, channels, height, width int, to []byte) bool {
	color, ok := p.data.chunks(file, height, width)
	if !ok || color != [...]byte{1: 0, 3: 2}[channels] {
		return false
	}
	stride := 1 + channels*width
	if n := stride * height; cap(p.rows) < n {
		p.rows = make([]byte, n)
	}
	p.rows = p.rows[:stride*height]
	if !p.unpack() {
		return false
	}
	above := make([]byte, stride-1)
	for y := range height {
		row := p.rows[y*stride : (y+1)*stride]
		if !unfilter(row[0], row[1:], above, channels) {
			return false
		}
		above = row[1:]
	}
	for y := range height {
		row := p.rows[y*stride+1 : (y+1)*stride]
		if channels == 1 {
			copy(to[y*width:], row)
			continue
		}
		plane, at := height*width, y*width
		red, green, blue := to[at:][:width], to[plane+at:][:width], to[2*plane+at:][:width]
		for x := range width {
			pixel := row[3*x : 3*x+3]
			red[x], green[x], blue[x] = pixel[0], pixel[1], pixel[2]
		}
	}
	return true
}

// unpack fills the rows; what is behind them is nothing but the checksum.
func (p *pngReader) unpack() bool {
	if p.unpacked == nil {
		z, err := zlib.NewReader(&p.data)
		if err != nil {
			return false
		}
		p.unpacked = z
	} else if p.unpacked.(zlib.Resetter).Reset(&p.data, nil) != nil { // which every reader of zlib is
		return false
	}
	if _, err := io.ReadFull(p.unpacked, p.rows); err != nil {
		return false
	}
	n, err := p.unpacked.Read(make([]byte, 1))
	return n == 0 && err == io.EOF
}

// pngData is the packed pixels of a file, which are in several chunks.
type pngData struct {
	parts [][]byte
}

func (d *pngData) Read(to []byte) (int, error) {
	for len(d.parts) > 0 && len(d.parts[0]) == 0 {
		d.parts = d.parts[1:]
	}
	if len(d.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(to, d.parts[0])
	d.parts[0] = d.parts[0][n:]
	return n, nil
}

// ReadByte keeps zlib from reading through a buffer of its own.
func (d *pngData) ReadByte() (byte, error) {
	for len(d.parts) > 0 && len(d.parts[0]) == 0 {
		d.parts = d.parts[1:]
	}
	if len(d.parts) == 0 {
		return 0, io.EOF
	}
	b := d.parts[0][0]
	d.parts[0] = d.parts[0][1:]
	return b, nil
}

// chunks finds the packed pixels of a file of a size, and says how colors are written; false of any file that is not as
// simple as most.
func (d *pngData) chunks(file []byte, height, width int) (color byte, ok bool) {
	d.parts = d.parts[:0]
	rest, found := bytes.CutPrefix(file, []byte(pngMagic))
	if !found {
		return 0, false
	}
	for first, packed, over := true, 0, false; ; first = false { // packed: 1 within the pixels' chunks, 2 behind them
		if len(rest) < 12 || over {
			return color, over && len(rest) == 0
		}
		n := int(binary.BigEndian.Uint32(rest))
		if n > len(rest)-12 || crc32.ChecksumIEEE(rest[4:8+n]) != binary.BigEndian.Uint32(rest[8+n:]) {
			return 0, false
		}
		kind, data := string(rest[4:8]), rest[8:8+n]
		rest = rest[12+n:]
		if first != (kind == "IHDR") {
			return 0, false
		}
		switch {
		case first:
			if n != 13 || binary.BigEndian.Uint32(data) != uint32(width) ||
				binary.BigEndian.Uint32(data[4:]) != uint32(height) ||
				data[8] != 8 || data[10] != 0 || data[11] != 0 || data[12] != 0 {
				return 0, false
			}
			color = data[9]
		case kind == "IDAT" && packed < 2:
			packed = 1
			d.parts = append(d.parts, data)
		case kind == "IEND":
			over = n == 0 && packed > 0
			if !over {
				return 0, false
			}
		case kind[0] >= 'a' && kind != "tRNS": // it says nothing of the pixels
			packed *= 2
		default:
			return 0, false
		}
	}
}

// unfilter makes the bytes of a row what they were before each became its difference to its neighbours: that on the
// left is so many bytes away, and the row above is whole.
func unfilter(filter byte, row, above []byte, step int) bool {
	above = above[:len(row)]
	switch filter {
	case 0:
	case 1:
		for i := step; i < len(row); i++ {
			row[i] += row[i-step]
		}
	case 2:
		for i := range row {
			row[i] += above[i]
		}
	case 3:
		for i := range step {
			row[i] += above[i] / 2
		}
		for i := step; i < len(row); i++ {
			row[i] += byte((int(row[i-step]) + int(above[i])) / 2)
		}
	case 4:
		for i := range step {
			row[i] += above[i]
		}
		for i := step; i < len(row); i++ {
			row[i] += paeth(row[i-step], above[i], above[i-step])
		}
	default:
		return false
	}
	return true
}

// paeth is that of left, above and both that is nearest to left + above - both.
func paeth(left, above, both byte) byte {
	a, b, c := int(left), int(above), int(both)
	toLeft, toAbove := b-c, a-c
	toBoth := max(toLeft+toAbove, -toLeft-toAbove)
	toLeft, toAbove = max(toLeft, -toLeft), max(toAbove, -toAbove)
	switch {
	case toLeft <= toAbove && toLeft <= toBoth:
		return left
	case toAbove <= toBoth:
		return above
	default:
		return both
	}
}
