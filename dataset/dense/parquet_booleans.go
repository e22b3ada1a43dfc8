package dense

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// booleanPages reads the booleans of a column of a row group. The library reads runs of equal ones wrongly: it takes
// a run of true as one true of each eight, and moves what follows a run whose length is no multiple of eight.
type booleanPages struct {
	file     *parquetFile
	column   *format.ColumnMetaData
	optional bool
	at, end  int64 // of the pages that are not read yet
	left     int   // rows of the page
	present  bitReader
	values   bitReader
}

func (f *parquetFile) booleansOf(leaf int, optional bool) *booleanPages {
	c := &f.meta.Metadata().RowGroups[f.group-1].Columns[leaf].MetaData
	at, end := pagesOf(c)
	return &booleanPages{file: f, column: c, optional: optional, at: at, end: end}
}

// read fills all of into.
func (b *booleanPages) read(into []parquet.Value) error {
	for k := range into {
		for b.left == 0 {
			if err := b.nextPage(); err != nil {
				return err
			}
		}
		b.left--
		into[k] = parquet.NullValue()
		if !b.optional || b.present.next() {
			into[k] = parquet.BooleanValue(b.values.next())
		}
		if b.present.short || b.values.short {
			return errors.New("a page has fewer values than its description says")
		}
	}
	return nil
}

// nextPage reads the next page, which may be one without rows.
func (b *booleanPages) nextPage() error {
	if b.at >= b.end {
		return errors.New("it has fewer rows than its description says")
	}
	h, length, err := b.file.pageHeader(b.at, b.end)
	if err != nil {
		return err
	}
	if size := int64(h.CompressedPageSize); size < 0 || size > b.end-b.at-length {
		return errors.New("a page goes beyond the end of its column")
	}
	data := make([]byte, h.CompressedPageSize)
	if _, err := b.file.local.ReadAt(data, b.at+length); err != nil {
		return err
	}
	if sum := crc32.ChecksumIEEE(data); h.CRC != 0 && sum != uint32(h.CRC) {
		return fmt.Errorf("a page has the checksum %08x, and its header says %08x", sum, uint32(h.CRC))
	}
	b.at += length + int64(len(data))
	switch h.Type {
	case format.DataPage:
		return b.first(&h, data)
	case format.DataPageV2:
		return b.second(&h, data)
	default:
		return nil
	}
}

// first reads a page of version 1, whose levels are packed with its values.
func (b *booleanPages) first(h *format.PageHeader, data []byte) (err error) {
	if data, err = b.unpack(data, int(h.UncompressedPageSize)); err != nil {
		return err
	}
	b.left = int(h.DataPageHeader.V.NumValues)
	if b.optional {
		if h.DataPageHeader.V.DefinitionLevelEncoding != format.RLE {
			return fmt.Errorf("its levels have the encoding %v", h.DataPageHeader.V.DefinitionLevelEncoding)
		}
		var levels []byte
		if levels, data, err = cutLength(data); err != nil {
			return err
		}
		b.present = bitReader{rest: levels, runs: true}
	}
	return b.setValues(data, h.DataPageHeader.V.Encoding)
}

// second reads a page of version 2, whose levels come first and are not packed.
func (b *booleanPages) second(h *format.PageHeader, data []byte) (err error) {
	v := &h.DataPageHeaderV2.V
	at, more := int(v.RepetitionLevelsByteLength), int(v.DefinitionLevelsByteLength)
	if at < 0 || more < 0 || at > len(data) || more > len(data)-at {
		return errors.New("the levels of a page go beyond its end")
	}
	b.left, b.present = int(v.NumValues), bitReader{rest: data[at : at+more], runs: true}
	data = data[at+more:]
	if !v.IsCompressed.Valid || v.IsCompressed.V {
		if data, err = b.unpack(data, int(h.UncompressedPageSize)-at-more); err != nil {
			return err
		}
	}
	return b.setValues(data, v.Encoding)
}

func (b *booleanPages) unpack(data []byte, size int) ([]byte, error) {
	if b.column.Codec == format.Uncompressed || len(data) == 0 {
		return data, nil
	}
	out, err := parquet.LookupCompressionCodec(b.column.Codec).Decode(nil, data)
	if err == nil && len(out) != size {
		err = fmt.Errorf("a page has %d bytes, and its header says %d", len(out), size)
	}
	return out, err
}

func (b *booleanPages) setValues(data []byte, by format.Encoding) (err error) {
	switch by {
	case format.Plain:
		b.values = bitReader{rest: data}
		return nil
	case format.RLE:
		if len(data) > 0 {
			data, _, err = cutLength(data)
		}
		b.values = bitReader{rest: data, runs: true}
		return err
	default:
		return fmt.Errorf("its booleans have the encoding %v", by)
	}
}

// cutLength cuts off a part that has its length before it.
func cutLength(data []byte) (part, rest []byte, err error) {
	const length = 4
	if len(data) >= length {
		if n := binary.LittleEndian.Uint32(data); uint64(n) <= uint64(len(data)-length) {
			return data[length:][:n], data[length+int(n):], nil
		}
	}
	return nil, nil, errors.New("a part of a page goes beyond its end")
}

// bitReader reads bits that lie in bytes from the lowest one, or in runs of these and of equal bits.
type bitReader struct {
	rest  []byte
	runs  bool
	same  uint64 // bits of the run that are left, all equal to bit
	bit   bool
	plain uint64 // bits of the bytes of the run that are left
	used  uint   // bits of the first byte
	short bool   // it came to the end
}

// next is the next bit; false at the end.
func (r *bitReader) next() bool {
	for r.runs && r.same == 0 && r.plain == 0 {
		r.nextRun()
	}
	if r.same > 0 {
		r.same--
		return r.bit
	}
	if r.short = r.short || len(r.rest) == 0; r.short {
		return false
	}
	bit := r.rest[0]>>r.used&1 == 1
	if r.used++; r.used == 8 {
		r.rest, r.used = r.rest[1:], 0
	}
	if r.runs {
		r.plain--
	}
	return bit
}

// nextRun reads the start of a run. At the end it makes one that is not there.
func (r *bitReader) nextRun() {
	head, n := binary.Uvarint(r.rest)
	switch {
	case n <= 0, n == len(r.rest):
		r.rest, r.plain = nil, 1
	case head&1 == 1:
		r.rest, r.plain = r.rest[n:], head>>1*8
	default:
		r.rest, r.same, r.bit = r.rest[n+1:], head>>1, r.rest[n]&1 == 1
	}
}
