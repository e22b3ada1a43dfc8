package dense

import (
	"bytes"
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
	"image"
	"image/color"
	"io"

	"github.com/klauspost/compress/flate"
)

// pngReader reads the common kind of PNG files, in memory that is reused: eight bits per channel, color or gray, of
// the wanted size, without transparency. It refuses all others and damaged ones: image/png reads those, and reports
// errors. The format: www.w3.org/TR/png-3.
type pngReader struct {
	data   pngData
	packed bytes.Reader
	flate  io.ReadCloser // of packed; nil until there is a file
	rows   []byte        // each with its filter before it
	above  []byte        // zeros, above the first row
}

const pngMagic = "\x89PNG\r\n\x1a\n"

// pngHead is how many bytes of a file have its size and kind of colors: the first chunk is IHDR, with a length, a
// name, 13 bytes and a checksum.
const pngHead = len(pngMagic) + 4 + 4 + 13 + 4

// plainPNG reads the first bytes of a file with eight bits per channel, in color or gray; ok is false for all others,
// and for very large pictures.
func plainPNG(begin []byte) (c image.Config, ok bool) {
	const longest = 1 << 16
	if len(begin) < pngHead || string(begin[:len(pngMagic)]) != pngMagic {
		return c, false
	}
	chunk := begin[len(pngMagic):pngHead]
	data := chunk[8:21]
	width, height := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	if string(chunk[:8]) != "\x00\x00\x00\x0dIHDR" ||
		crc32.ChecksumIEEE(chunk[4:21]) != binary.BigEndian.Uint32(chunk[21:]) ||
		width-1 >= longest || height-1 >= longest || data[8] != 8 || data[10] != 0 || data[11] != 0 || data[12] > 1 {
		return c, false
	}
	c = image.Config{ColorModel: color.RGBAModel, Width: int(width), Height: int(height)}
	if data[9] == 0 {
		c.ColorModel = color.GrayModel
	}
	return c, data[9] == 0 || data[9] == 2
}

// read reads a file into a row of a data set, [channels height width], and tells whether it could.
func (p *pngReader) read(file []byte, channels, height, width int, to []byte) bool {
	kind, ok := p.data.chunks(file, height, width)
	if !ok || kind != [...]byte{1: 0, 3: 2}[channels] {
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
	if len(p.above) < stride-1 {
		p.above = make([]byte, stride-1)
	}
	above := p.above
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

// unpack fills the rows from a zlib stream (RFC 1950) that nothing follows.
func (p *pngReader) unpack() bool {
	in := p.data.all()
	const head, method, window, dictionary = 2, 8, 7, 0x20
	if len(in) < head || in[0]&15 != method || in[0]>>4 > window || in[1]&dictionary != 0 ||
		binary.BigEndian.Uint16(in)%31 != 0 {
		return false
	}
	p.packed.Reset(in[head:])
	if p.flate == nil {
		p.flate = flate.NewReader(&p.packed)
	} else if err := p.flate.(flate.Resetter).Reset(&p.packed, nil); err != nil {
		return false
	}
	if _, err := io.ReadFull(p.flate, p.rows); err != nil {
		return false
	}
	var more [1]byte
	if n, err := p.flate.Read(more[:]); n != 0 || err != io.EOF {
		return false
	}
	sum := in[len(in)-p.packed.Len():]
	return len(sum) == adler32.Size && adler32.Checksum(p.rows) == binary.BigEndian.Uint32(sum)
}

// pngData is the packed pixels of a file, perhaps in several chunks.
type pngData struct {
	parts  [][]byte
	joined []byte
}

func (d *pngData) all() []byte {
	if len(d.parts) == 1 {
		return d.parts[0]
	}
	d.joined = d.joined[:0]
	for _, part := range d.parts {
		d.joined = append(d.joined, part...)
	}
	return d.joined
}

// chunks finds the packed pixels of a file of a size, and the kind of its colors; ok is false for any unusual file.
func (d *pngData) chunks(file []byte, height, width int) (colors byte, ok bool) {
	d.parts = d.parts[:0]
	rest, found := bytes.CutPrefix(file, []byte(pngMagic))
	if !found {
		return 0, false
	}
	for first, packed, over := true, 0, false; ; first = false { // packed: 1 within the pixels' chunks, 2 behind them
		if len(rest) < 12 || over {
			return colors, over && len(rest) == 0
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
			colors = data[9]
		case kind == "IDAT" && packed < 2:
			packed = 1
			d.parts = append(d.parts, data)
		case kind == "IEND":
			over = n == 0 && packed > 0
			if !over {
				return 0, false
			}
		case kind[0] >= 'a' && kind != "tRNS": // it does not change the pixels
			packed *= 2
		default:
			return 0, false
		}
	}
}

// unfilter restores the bytes of a row from their differences to neighbours: the left one is step bytes away, and the
// row above is complete.
func unfilter(filter byte, row, above []byte, step int) bool {
	above = above[:len(row)]
	switch filter {
	case 0:
	case 1:
		for i := step; i < len(row); i++ {
			row[i] += row[i-step]
		}
	case 2:
		addTo(row, above)
	case 3:
		for i := range step {
			row[i] += above[i] / 2
		}
		for i := step; i < len(row); i++ {
			row[i] += byte((int(row[i-step]) + int(above[i])) / 2)
		}
	case 4:
		if step == 3 {
			unPaeth3(row, above)
			break
		}
		for i := range step {
			row[i] += above[i]
		}
		for i := step; i < len(row); i++ {
			row[i] += byte(paeth(int32(row[i-step]), int32(above[i]), int32(above[i-step])))
		}
	default:
		return false
	}
	return true
}

// addTo adds bytes to others, eight at a time: the highest bits of each are added separately, so that nothing
// carries.
func addTo(to, from []byte) {
	const high = 0x8080808080808080
	for len(to) >= 8 && len(from) >= 8 {
		a, b := binary.LittleEndian.Uint64(to), binary.LittleEndian.Uint64(from)
		binary.LittleEndian.PutUint64(to, (a&^high+b&^high)^(a^b)&high)
		to, from = to[8:], from[8:]
	}
	for i := range min(len(to), len(from)) {
		to[i] += from[i]
	}
}

// unPaeth3 is filter 4 for pixels of three bytes, computed side by side.
func unPaeth3(row, above []byte) {
	var left, corner [3]int32
	for len(row) >= 3 && len(above) >= 3 {
		r0, r1, r2 := int32(above[0]), int32(above[1]), int32(above[2])
		left[0] = (int32(row[0]) + paeth(left[0], r0, corner[0])) & 0xFF
		left[1] = (int32(row[1]) + paeth(left[1], r1, corner[1])) & 0xFF
		left[2] = (int32(row[2]) + paeth(left[2], r2, corner[2])) & 0xFF
		row[0], row[1], row[2] = byte(left[0]), byte(left[1]), byte(left[2])
		corner = [3]int32{r0, r1, r2}
		row, above = row[3:], above[3:]
	}
}

// paeth is the one of left, above and both that is nearest to left + above - both, the first of several. It has no
// branches, which a processor would often predict wrong.
func paeth(left, above, both int32) int32 {
	toLeft, toAbove := distance(above-both), distance(left-both)
	toBoth := distance(left + above - 2*both)
	nearest := left
	if toAbove < toLeft {
		nearest = above
	}
	if toBoth < min(toLeft, toAbove) {
		nearest = both
	}
	return nearest
}

// distance is an absolute value without a branch.
func distance(v int32) int32 {
	sign := v >> 31
	return (v ^ sign) - sign
}
