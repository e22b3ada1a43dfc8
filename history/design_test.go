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
	asTheyAre(t, design, map[string]string{"disdel": "19e783313ef36591", "disdel-2": "47bc3bedc5028ac6"}, indexes)
}

// So does the view.
func TestTheViewOfADesignStaysAsItIs(t *testing.T) {
	asTheyAre(t, viewDesign, map[string]string{
		"disdel-view": "66741160450107c9", "disdel-view-2": "a0919a3865366829",
	}, viewDocument())
}

func asTheyAre(t *testing.T, name string, known map[string]string, content any) {
	t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:8]); known[name] != got {
		t.Errorf("%s is other (%s) than what histories have under that name (%s)", name, got, known[name])
	}
}
