package nearest

import "testing"

func TestWordFindsWhatWasMeant(t *testing.T) {
	fields := []string{"learningRate", "momentum", "epochs", "batchSize"}
	for _, c := range []struct{ word, want string }{
		{"leraning_rate", "learningRate"},
		{"batch_size", "batchSize"},
		{"epoch", "epochs"},
		{"Momentun", "momentum"},
		{"wibble", ""},
		{"", ""},
	} {
		if got := Word(c.word, fields); got != c.want {
			t.Errorf("Word(%q) = %q, want %q", c.word, got, c.want)
		}
	}
}
