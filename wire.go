package disdel

// Wire is the number format of an update on its way.
type Wire string

// The formats of Wire. What the others than float32 do not send is added to the next round's update (error feedback).
const (
	WireFloat32     Wire = "float32"
	WireBfloat16    Wire = "bfloat16"
	WireInt8        Wire = "int8"
	WireSignificant Wire = "significant" // only what has changed enough: see Aggregation.Threshold
)

// wireForm is what is known of a format by those who do not encode it.
type wireForm struct {
	wire        Wire
	differences bool    // to the round's reference, with what is not sent kept for the next round
	share       float64 // bytes of a large update over those of float32; the most, where that depends on the values
	small       float64 // the same for one of many small arrays
}

// wireForms has a row for every format; aggregator has the codec.
var wireForms = [...]wireForm{
	{WireFloat32, false, 1, 1},
	{WireBfloat16, true, 1. / 2, 1. / 2},
	{WireInt8, true, 1./4 + 1./256, 0.27},       // and a scale of four bytes for every 256 values
	{WireSignificant, true, 1 + 1./4, 1 + 3./8}, // every value and the byte that says where it belongs
}

// Wires are all formats, in the order of their numbers in an update.
func Wires() []Wire {
	out := make([]Wire, len(wireForms))
	for i, f := range wireForms {
		out[i] = f.wire
	}
	return out
}

// form is that of float32 where there is none of this name: "" is float32.
func (w Wire) form() wireForm {
	for _, f := range wireForms {
		if f.wire == w {
			return f
		}
	}
	return wireForms[0]
}

// Differences says whether updates are sent as differences to their round's reference, while workers keep what was not
// sent.
func (w Wire) Differences() bool { return w.form().differences }

// Share is the most that a large update takes on the wire, over what it takes as float32.
func (w Wire) Share() float64 { return w.form().share }

// SmallShare is Share for an update of many small arrays.
func (w Wire) SmallShare() float64 { return w.form().small }
