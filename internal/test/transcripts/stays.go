package transcripts

// Stays is every difference to the real OpenWhisk that is meant, with its reason, by the name of the exchange.
var Stays = map[string]string{
	"info root":           noImages,
	"info api":            noBuild,
	"info api slash":      noBuild,
	"create kind unknown": aSet,
	"create kind family":  aSet,
	"record raises":       asArgument,
	"record syntax":       asArgument,
	"run disdel kind":     ofThen,

	"create blackbox missing image": noSuchImage,
	"run bbmiss":                    noSuchImage,
	"list count":                    noSuchImage,
	"activations count":             noSuchImage,
	"final list count":              noSuchImage,
}

// OfTheRuntime are differences that are there where the kind disdel:1 is not disdel's own runtime.
var OfTheRuntime = map[string]string{
	"run disdel empty":        notDisdel,
	"run disdel kind":         notDisdel,
	"run disdel kind badmain": notDisdel,
	"activations list 2":      notDisdel,
}

// The reasons that several have.
const (
	noImages   = "kinds are programs of this machine, and have no image"
	noBuild    = "it is another build, and says so"
	aSet       = "the kinds come in the order of a hash there, and of the alphabet here"
	asArgument = "the launcher is a file there and an argument here, which tracebacks show"
	notDisdel  = "the container is no runtime of disdel"
	// noSuchImage also has the counts after it.
	noSuchImage = "an image that cannot run here is refused when the action is created, and not at each run"
	ofThen      = "the request is an earlier disdel's, whose fields had other names"
)
