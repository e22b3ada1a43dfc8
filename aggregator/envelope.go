package aggregator

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/disdel/disdel"
)

// The head of a value, little-endian:
//
//	 0  magic "DSDU"           32  fence    u64
//	 4  version u16            40  samples  f64
//	 6  length of job u16      48  token    u64
//	 8  round   u32            56  length of all this u32
//	12  level   u32            60  tensors  u32
//	16  kind    u8             64  length of meta u32
//	17  wire    u8             68  reserved u32
//	18  difference u8          72  job
//	19  reserved u8                for each tensor: length of name u16, name, rank u8, sides u32
//	20  column  u32                meta, a JSON object of strings, or nothing
//	24  member  u32                CRC32C of each column u32
//	28  attempt u32                CRC32C of all before u32
//
// A single column follows directly; several columns have their own keys.
const (
	magic       = "DSDU"
	wireVersion = 2
	fixedHead   = 72
	maxHead     = 64 << 20
	maxValues   = 1 << 32
	maxJob      = 256
	maxName     = 1 << 12
	maxRank     = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kind is the kind of a value.
type kind uint8

const (
	kindUpdate kind = iota
	kindReference
	kindState
	kindShard // a shard of a reference; its round is that of the reference
)

var kindNames = [...]string{"update", "reference", "state", "shard"}

func (k kind) String() string { return kindNames[k] }

// lost is the error code of a missing or damaged value of this kind. States have none, because their worker starts
// without it.
func (k kind) lost() disdel.Code {
	switch k {
	case kindUpdate, kindShard:
		return disdel.CodeLostUpdate
	case kindReference:
		return disdel.CodeLostReference
	default:
		return ""
	}
}

// subject is the id in an error about a value. A reference has only a job and a round. That of a shard is the update
// that an aggregation claimed for it, in the round before.
func (k kind) subject(id disdel.UpdateID) *disdel.UpdateID {
	switch k {
	case kindReference:
		id = disdel.UpdateID{Job: id.Job, Round: id.Round}
	case kindShard:
		id.Round--
	}
	return &id
}

// head describes a value.
type head struct {
	kind       kind
	id         disdel.UpdateID
	attempt    int
	fence      uint64
	token      uint64 // random, different for each delivery
	samples    float64
	wire       disdel.Wire
	codec      codec // codec of wire
	difference bool  // the values are differences to the round's reference
	layout     layout
	division   division
	meta       map[string]string
	sums       []uint32 // CRC32C of each column
}

// inline tells whether the only column follows the head.
func (h *head) inline() bool { return h.layout.columns() == 1 }

// encode returns the bytes of the head.
func (h *head) encode() ([]byte, error) {
	var meta []byte
	if all := h.division.addTo(h.meta); len(all) > 0 {
		var err error
		if meta, err = json.Marshal(all); err != nil {
			return nil, err
		}
	}
	out := make([]byte, fixedHead, fixedHead+len(h.id.Job)+64*len(h.layout.tensors)+len(meta)+4*len(h.sums)+4)
	le := binary.LittleEndian
	copy(out, magic)
	le.PutUint16(out[4:], wireVersion)
	le.PutUint16(out[6:], uint16(len(h.id.Job)))
	le.PutUint32(out[8:], uint32(h.id.Round))
	le.PutUint32(out[12:], uint32(h.id.Level))
	out[16], out[17] = byte(h.kind), byte(wireNumber(h.wire))
	if h.difference {
		out[18] = 1
	}
	le.PutUint32(out[20:], uint32(h.layout.column))
	le.PutUint32(out[24:], uint32(h.id.Member))
	le.PutUint32(out[28:], uint32(h.attempt))
	le.PutUint64(out[32:], h.fence)
	le.PutUint64(out[40:], math.Float64bits(h.samples))
	le.PutUint64(out[48:], h.token)
	le.PutUint32(out[60:], uint32(len(h.layout.tensors)))
	le.PutUint32(out[64:], uint32(len(meta)))
	out = append(out, h.id.Job...)
	out = h.appendContent(out, meta)
	le.PutUint32(out[56:], uint32(len(out)+4))
	return le.AppendUint32(out, crc32.Checksum(out, castagnoli)), nil
}

// appendContent appends the part that identifies the values.
func (h *head) appendContent(out, meta []byte) []byte {
	le := binary.LittleEndian
	for _, t := range h.layout.tensors {
		out = append(le.AppendUint16(out, uint16(len(t.Name))), t.Name...)
		out = append(out, byte(len(t.Shape)))
		for _, side := range t.Shape {
			out = le.AppendUint32(out, uint32(side))
		}
	}
	out = append(out, meta...)
	for _, sum := range h.sums {
		out = le.AppendUint32(out, sum)
	}
	return out
}

// digest identifies the content: it is the same under another fence.
func (h *head) digest() string {
	text := fmt.Appendf(nil, "%s %t %x ", codecs[wireNumber(h.wire)].wire, h.difference, math.Float64bits(h.samples))
	meta, _ := json.Marshal(h.meta) // of strings: does not fail
	sum := sha256.Sum256(h.appendContent(text, meta))
	return hex.EncodeToString(sum[:16])
}

// corruptError is the error of a damaged or wrong value.
func corruptError(k kind, id disdel.UpdateID, format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Code: k.lost(), Op: "read " + k.String() + " " + id.String(), Job: id.Job,
		Subject: k.subject(id),
		Msg:     fmt.Sprintf(format, args...),
		Hint:    "it was damaged on its way or in the store; run the job again",
	}
}

// fetchError is the error of a value that could not be read. A missing value gets its kind's code, so that the round
// can be restarted.
func fetchError(err error, k kind, id disdel.UpdateID) error {
	err = wrap(err, "fetch "+k.String(), id.String())
	var e *disdel.Error
	if errors.As(err, &e) && e.Kind == disdel.NotFound && e.Code == "" {
		e.Code, e.Job, e.Subject = k.lost(), id.Job, k.subject(id)
	}
	return err
}

func notFiniteError(k kind, id disdel.UpdateID, where string) error {
	return &disdel.Error{
		Kind: disdel.Diverged, Op: "check " + k.String() + " " + id.String(), Job: id.Job, Subject: k.subject(id),
		Msg: where + " is not finite", Hint: "lower the learning rate",
	}
}

// decodeHead checks a head and returns it with the bytes after it. It checks lengths, checksum, identity, and then the
// shapes of like; nil accepts any.
func decodeHead(data []byte, k kind, id disdel.UpdateID, like disdel.Weights) (*head, []byte, error) {
	le := binary.LittleEndian
	if len(data) < fixedHead+4 || string(data[:4]) != magic {
		return nil, nil, corruptError(k, id, "%d bytes that are no %s", len(data), k)
	}
	if v := le.Uint16(data[4:]); v != wireVersion {
		return nil, nil, corruptError(k, id, "version %d of the envelope is not supported", v)
	}
	n := le.Uint32(data[56:])
	if n > maxHead || n < fixedHead+4 || int(n) > len(data) ||
		crc32.Checksum(data[:n-4], castagnoli) != le.Uint32(data[n-4:]) {
		return nil, nil, corruptError(k, id, "the header is damaged")
	}
	h, err := parseHead(data[:n-4])
	if err != nil {
		return nil, nil, corruptError(k, id, "%v", err)
	}
	if h.kind != k || h.id != id {
		return nil, nil, corruptError(k, id, "it is %s %v", h.kind, h.id)
	}
	if !(h.samples > 0) || math.IsInf(h.samples, 0) {
		return nil, nil, corruptError(k, id, "it stands for %g samples", h.samples)
	}
	if like != nil {
		if err := h.layout.checkShapes(like); err != nil {
			return nil, nil, corruptError(k, id, "%v", err)
		}
	}
	rest := len(data) - int(n)
	if !h.inline() && rest != 0 || h.inline() && checkSize(h.codec, h.layout.runs(0), rest) != nil {
		return nil, nil, corruptError(k, id, "%d bytes follow the header", rest)
	}
	return h, data[n:], nil
}

// parseHead parses a head whose checksum is right. It still checks every number.
func parseHead(data []byte) (*head, error) {
	le := binary.LittleEndian
	h := &head{
		kind: kind(data[16]), difference: data[18] == 1, attempt: int(le.Uint32(data[28:])), fence: le.Uint64(data[32:]),
		samples: math.Float64frombits(le.Uint64(data[40:])), token: le.Uint64(data[48:]),
	}
	jobSize, tensors, metaSize := int(le.Uint16(data[6:])), le.Uint32(data[60:]), int(le.Uint32(data[64:]))
	reserved := data[19] != 0 || le.Uint32(data[68:]) != 0
	if int(h.kind) >= len(kindNames) || int(data[17]) >= len(codecs) || data[18] > 1 || reserved {
		return nil, fmt.Errorf("kind %d in format %d, difference %d", data[16], data[17], data[18])
	}
	h.wire = codecs[data[17]].wire
	h.codec = codecOf(h.wire)
	r := reader{rest: data[fixedHead:]}
	h.id = disdel.UpdateID{
		Job: disdel.JobID(r.take(jobSize)), Round: int(le.Uint32(data[8:])), Level: int(le.Uint32(data[12:])),
		Member: int(le.Uint32(data[24:])),
	}
	weights, err := r.tensors(int(tensors))
	if err != nil {
		return nil, err
	}
	h.layout = newLayout(weights, int(le.Uint32(data[20:])))
	if h.layout.column < 1 {
		return nil, fmt.Errorf("columns of %d values", h.layout.column)
	}
	if metaSize > 0 {
		if err := json.Unmarshal(r.take(metaSize), &h.meta); err != nil {
			return nil, fmt.Errorf("meta: %w", err)
		}
		if err := h.division.takeFrom(h.meta); err != nil {
			return nil, fmt.Errorf("meta: %w", err)
		}
	}
	if len(r.rest) != 4*h.layout.columns() || r.short {
		return nil, fmt.Errorf("%d bytes of checksums for %d columns", len(r.rest), h.layout.columns())
	}
	h.sums = make([]uint32, h.layout.columns())
	for i := range h.sums {
		h.sums[i] = le.Uint32(r.rest[4*i:])
	}
	return h, nil
}

// reader takes bytes from the front of a buffer.
type reader struct {
	rest  []byte
	short bool // the buffer was too short
}

func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.short, r.rest = true, nil
		return make([]byte, min(n, 8))
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

// tensors reads names and shapes, and refuses sizes that overflow.
func (r *reader) tensors(count int) (disdel.Weights, error) {
	if count > len(r.rest)/3 {
		return nil, fmt.Errorf("%d tensors in %d bytes", count, len(r.rest))
	}
	out, total := make(disdel.Weights, count), 0
	for i := range out {
		out[i].Name = string(r.take(int(binary.LittleEndian.Uint16(r.take(2)))))
		rank := int(r.take(1)[0])
		if rank > maxRank || len(out[i].Name) > maxName {
			return nil, fmt.Errorf("tensor %d has rank %d and a name of %d bytes", i, rank, len(out[i].Name))
		}
		out[i].Shape = make([]int, rank)
		n := 1
		for d := range rank {
			side := int(binary.LittleEndian.Uint32(r.take(4)))
			if out[i].Shape[d] = side; side > 0 && n > maxValues/side {
				return nil, fmt.Errorf("tensor %d is too large", i)
			}
			n *= side
		}
		if total += n; total > maxValues || r.short {
			return nil, fmt.Errorf("the table of tensors does not fit")
		}
	}
	return out, nil
}
