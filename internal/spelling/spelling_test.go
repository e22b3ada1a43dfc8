package spelling

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
		if got := Closest(c.word, fields); got != c.want {
			t.Errorf("Closest(%q) = %q, want %q", c.word, got, c.want)
		}
	}
}

// A word is also found by its start, if that is long enough and no other begins so.
func TestWordFindsTheOnlyOneThatBeginsSo(t *testing.T) {
	networks := []string{"softmax-regression", "lenet5", "resnet18", "resnet50", "resnet20-cifar"}
	for word, want := range map[string]string{
		"softmax": "softmax-regression", "Soft": "softmax-regression", "lenet": "lenet5", "res": "", "so": "",
		"regression": "",
	} {
		if got := Closest(word, networks); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}
}

// A word that is far from everything gets no answer rather than a wrong one.
func TestWordsThatAreFarFromAllGetNoAnswer(t *testing.T) {
	commands := []string{
		"quickstart", "submit", "resume", "estimate", "validate", "explain", "dataset", "history",
		"report", "model", "infer", "platform", "help", "version",
	}
	for _, word := range []string{"delete", "ls", "stop", "cancel", "list", "train", "status", "logs", "rm"} {
		if got := Closest(word, commands); got != "" {
			t.Errorf("Closest(%q) = %q", word, got)
		}
	}
}
