package dense

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/disdel/disdel"
)

// The library takes memory by the numbers in a file. What follows checks these numbers first, so that a damaged or hostile
// file cannot take more memory than the limits below.
const (
	mostPages      = 512 << 20 // bytes of the largest page of each column, together
	mostPageValues = 1 << 24   // values of a page
	pageValue      = 8         // bytes of a value of a page besides the page itself, about
)

// checkPages reads the headers of all pages of a row group's flat columns. It returns an error for sizes that do not
// fit the file, and Invalid if its pages need more memory than it may.
func (f *parquetFile) checkPages(group int) error {
	described, total := &f.meta.Metadata().RowGroups[group], int64(0)
	if described.NumRows == 0 { // some writers note no place for pages that do not exist
		return nil
	}
	for _, flat := range f.flat {
		name := f.columns[flat.column].name
		if flat.leaf >= len(described.Columns) {
			return fmt.Errorf("column %s is missing", name)
		}
		c := &described.Columns[flat.leaf]
		if c.FilePath != "" {
			return fmt.Errorf("column %s is in another file", name)
		}
		if err := f.checkCodec(name, c.MetaData.Codec); err != nil {
			return err
		}
		largest, err := f.checkColumn(&c.MetaData, described.NumRows)
		if err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
		total += largest
	}
	if total > f.pages {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + f.name,
			Msg: fmt.Sprintf("row group %d needs %v of memory for one page of each column, and at most %v are used",
				group+1, disdel.Bytes(total), disdel.Bytes(f.pages)),
			Hint: "write it with smaller pages or fewer columns: pyarrow.parquet.write_table(..., data_page_size=1 << 20)",
		}
	}
	return nil
}

// codecs are the compressions that are read. The library gives memory of other pages for LZ4 (parquet-go v0.32.0).
var codecs = []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd}

func (f *parquetFile) checkCodec(name string, codec format.CompressionCodec) error {
	if slices.Contains(codecs, codec) {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + f.name,
		Msg:  fmt.Sprintf("column %s is compressed with %v, which is not read", name, codec),
		Hint: `write it with zstd or snappy: pyarrow.parquet.write_table(..., compression="zstd")`,
	}
}

// pagesOf is where the pages of a column begin and end.
func pagesOf(c *format.ColumnMetaData) (at, end int64) {
	at = c.DataPageOffset
	if c.DictionaryPageOffset != 0 {
		at = c.DictionaryPageOffset
	}
	return at, at + c.TotalCompressedSize
}

// checkColumn returns the memory of the largest page of a column and of its dictionary.
func (f *parquetFile) checkColumn(c *format.ColumnMetaData, rows int64) (largest int64, err error) {
	at, end := pagesOf(c)
	values, dictionary := int64(0), int64(0)
	if at < int64(len(parquetMark)) || c.TotalCompressedSize < 0 || end < at || end > f.meta.Size() {
		return 0, errors.New("it goes beyond the end of the file")
	}
	for at < end && values < rows {
		h, length, err := f.pageHeader(at, end)
		if err != nil {
			return 0, err
		}
		packed, unpacked := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
		n := int64(max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues))
		at += length + packed
		if packed < 0 || unpacked < 0 || at > end || n < 0 || n > mostPageValues {
			return 0, fmt.Errorf("a page of %d values has %d bytes of %d that are left", n, packed, end-at+packed)
		}
		size := packed + unpacked + pageValue*n
		switch h.Type {
		case format.DictionaryPage:
			if n > unpacked+1 {
				return 0, fmt.Errorf("a dictionary of %d bytes has %d values", unpacked, n)
			}
			dictionary = size
		case format.DataPage, format.DataPageV2:
			values += n
			largest = max(largest, size)
		}
	}
	if values != rows {
		return 0, fmt.Errorf("it has %d values for %d rows", values, rows)
	}
	return largest + dictionary, nil
}

// Sizes of the headers of pages: most have some dozen bytes, and a few have long statistics.
const (
	usualPageHeader   = 1 << 10
	largestPageHeader = 1 << 20
)

// pageHeader reads the header of a page, and returns its length.
func (f *parquetFile) pageHeader(at, end int64) (h format.PageHeader, length int64, err error) {
	for window := int64(usualPageHeader); ; window = largestPageHeader {
		text := make([]byte, min(window, end-at))
		if _, err := f.local.ReadAt(text, at); err != nil && !errors.Is(err, io.EOF) {
			return h, 0, err
		}
		walk := &thriftWalk{rest: text}
		if walk.value(thriftStruct, 0) {
			length = int64(len(text) - len(walk.rest))
			in := new(thrift.CompactProtocol).NewReaderFromBytes(text[:length])
			return h, length, thrift.NewDecoder(in).Decode(&h)
		}
		if window == largestPageHeader || int64(len(text)) < window {
			return h, 0, errors.New("the header of a page is damaged")
		}
	}
}

// The types of Thrift's compact protocol (Apache Thrift, doc/specs/thrift-compact-protocol.md).
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftText   = 8
	thriftList   = 9
	thriftSet    = 10
	thriftStruct = 12
)

// thriftWalk skips values in Thrift's compact protocol. It checks that lists and texts are no longer than the bytes that
// are left.
type thriftWalk struct{ rest []byte }

// leastElement is the fewest bytes of a struct in a list of a Parquet file: two fields and the end.
const leastElement = 3

// value skips a value of a type; false: there is no such value.
func (w *thriftWalk) value(kind byte, depth int) bool {
	const deepest = 32
	if depth > deepest {
		return false
	}
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		return w.skip(1)
	case thriftI16, thriftI32, thriftI64:
		_, ok := w.number()
		return ok
	case thriftDouble:
		return w.skip(8)
	case thriftText:
		n, ok := w.number()
		return ok && w.skip(n)
	case thriftList, thriftSet:
		return w.list(depth)
	case thriftStruct:
		return w.fields(depth)
	default:
		return false
	}
}

// fields skips the fields of a struct.
func (w *thriftWalk) fields(depth int) bool {
	for len(w.rest) > 0 {
		head := w.rest[0]
		w.rest = w.rest[1:]
		if head == 0 {
			return true
		}
		if head>>4 == 0 { // the field's number follows
			if _, ok := w.number(); !ok {
				return false
			}
		}
		if kind := head & 15; kind != thriftTrue && kind != thriftFalse && !w.value(kind, depth+1) {
			return false
		}
	}
	return false
}

// list skips the elements of a list.
func (w *thriftWalk) list(depth int) bool {
	if len(w.rest) == 0 {
		return false
	}
	head := w.rest[0]
	w.rest = w.rest[1:]
	n, ok := uint64(head>>4), true
	if n == 15 {
		n, ok = w.number()
	}
	kind, minimum := head&15, uint64(1)
	if kind == thriftStruct {
		minimum = leastElement
	}
	if !ok || n > uint64(len(w.rest))/minimum {
		return false
	}
	for range n {
		if !w.value(kind, depth+1) {
			return false
		}
	}
	return true
}

func (w *thriftWalk) skip(n uint64) bool {
	if n > uint64(len(w.rest)) {
		return false
	}
	w.rest = w.rest[n:]
	return true
}

// number reads a number of variable length, as it is stored.
func (w *thriftWalk) number() (uint64, bool) {
	v, n := binary.Uvarint(w.rest)
	if n <= 0 {
		return 0, false
	}
	w.rest = w.rest[n:]
	return v, true
}
