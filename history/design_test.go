package history

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
)

// Indexes change with the number of their design document alone. After a change that is meant, the document has a new
// name and its digest a line here.
func TestIndexesOfADesignStayAsTheyAre(t *testing.T) {
	known := map[string]string{"disdel": "19e783313ef36591", "disdel-2": "47bc3bedc5028ac6"}
	text, err := json.Marshal(indexes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:8]); known[design] != got {
		t.Errorf("the indexes of %s are others (%s) than those that histories have under that name (%s)", design, got,
			known[design])
	}
}
