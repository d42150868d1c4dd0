// Package segment is the format of the objects that hold flushed record
// batches: a header, runs of batches verbatim, an index with a row for each
// batch, a trailer. It turns batches into the parts of such an object and
// parses and verifies stored ones; it does no I/O and starts nothing.
// docs/formats/segment.md has the bytes.
package segment
