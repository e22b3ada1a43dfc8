// Package dense reads common files as dense rows with a class each, for dataset.Store.AddDense: tables (CSV, JSON
// objects, Parquet), arrays of NumPy, and folders of pictures.
//
// Files are read as streams, once to find out what is in them and once more for every writing, in memory that does
// not grow with them. A reader reports how it interpreted the files (dataset.Interpretation), and all faults at once,
// up to a limit, with line or file. It guesses types, never values.
package dense
