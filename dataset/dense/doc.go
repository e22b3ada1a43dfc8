// Package dense reads the files that people have as dense rows with a class each: tables in CSV, arrays of NumPy, and
// folders of pictures. What it gives goes to dataset.Store.AddDense.
//
// Files are read as streams, once to find out what is in them and once more for every writing, in memory that does not
// grow with them. A reader says what it took the files for (dataset.Understood), and where they are wrong it says all
// of it at once, up to a bound, with line or file. It guesses types, never values.
package dense
