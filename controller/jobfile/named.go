package jobfile

import "strings"

// FieldNamed finds the field of the job file that a person means who knows its last name only, as of a flag of that
// name: epochs is training.epochs, batch-size is training.batchSize. Of several the default's is meant: learningRate is
// Adam's. exact says that the name was written as it is, but for case and separators. path is "" where there is none.
func FieldNamed(name string) (path, example string, exact bool) {
	var names []string
	for i := range fields {
		if nameable(&fields[i]) {
			names = append(names, fields[i].name())
		}
	}
	near := closestKey(name, names)
	if near == "" {
		return "", "", false
	}
	f := namesake(near)
	return f.path, f.example, plain(near) == plain(name)
}

// nameable fields are those that a value can be given to by a short name.
func nameable(f *field) bool {
	return !f.later && f.form != object && f.form != list && !strings.Contains(f.path, "[]") && f.name() != "*" &&
		len(children(f.path)) == 0 || f.form == syncMode
}

// namesake is the field with this last name, of several the one that counts where the job says nothing.
func namesake(name string) *field {
	var first *field
	for i := range fields {
		f := &fields[i]
		switch {
		case f.name() != name || !nameable(f):
		case strings.HasPrefix(f.path, usualOptimizer):
			return f
		case first == nil:
			first = f
		}
	}
	return first
}

// usualOptimizer is the object of the optimiser that a job has which names none.
const usualOptimizer = "training.optimizer.adam."

// plain drops what a flag and a field write differently.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}
