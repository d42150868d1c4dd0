package sim

import "testing"

// A tale makes histories by hand.
type tale struct{ history }

var p0, p1 = partition{"t", 0}, partition{"t", 1}

// write adds a batch of records that was sent once, not acknowledged.
func (h *tale) write(acks int16, ids ...recordID) *write {
	w := &write{producer: "p", conn: "p-1", partition: p0, acks: acks, records: ids, sent: h.tick(), tries: 1}
	h.writes = append(h.writes, w)
	return w
}

func (h *tale) ack(w *write, base int64) { w.acked, w.base = h.tick(), base }

// read adds a fetch that gave records, from an offset on, all of epoch 1.
func (h *tale) read(reader string, from, high int64, ids ...recordID) *read {
	r := &read{sight: sight{partition: p0, sent: h.tick(), start: 0, high: high}, reader: reader, from: from}
	r.got = h.tick()
	for i, id := range ids {
		r.records = append(r.records, readRecord{offset: from + int64(i), epoch: 1, id: id})
	}
	h.reads = append(h.reads, r)
	return r
}

// pass adds a reader that reads everything.
func (h *tale) pass(reader string, ids ...recordID) {
	began := h.tick()
	h.read(reader, 0, int64(len(ids)), ids...)
	h.passes = append(h.passes, pass{reader: reader, partition: p0, began: began, to: int64(len(ids))})
}

func (h *tale) sight(start, high int64) *sight {
	h.sights = append(h.sights, sight{partition: p0, sent: h.tick(), got: h.tick(), start: start, high: high})
	return &h.sights[len(h.sights)-1]
}

// lookUp adds a question for a time and its answer.
func (h *tale) lookUp(ms, offset, timestamp int64) {
	h.lookups = append(h.lookups, lookup{partition: p0, asker: "c", sent: h.tick(), got: h.tick(), ms: ms, offset: offset, timestamp: timestamp})
}

func TestCheckHistories(t *testing.T) {
	tests := []struct {
		name string
		tell func(h *tale)
		want string // begins one of the complaints; empty is none
	}{
		{"nothing", func(h *tale) {}, ""},
		{"written, acknowledged, read", func(h *tale) {
			h.ack(h.write(-1, 1, 2), 0)
			h.pass("r", 1, 2)
		}, ""},
		{"not acknowledged, there or not", func(h *tale) {
			h.write(-1, 1)
			h.write(-1, 2)
			h.write(1, 3)
			h.pass("r", 2)
		}, ""},
		{"acknowledged by acks=1, then lost", func(h *tale) {
			h.ack(h.write(1, 1), 0)
			h.ack(h.write(-1, 2), 0)
			h.pass("r", 2)
		}, ""},
		{"sent twice, there twice", func(h *tale) {
			w := h.write(-1, 1)
			w.tries = 2
			h.ack(w, 1)
			h.pass("r", 1, 1)
		}, ""},
		{"acknowledged after a pass began", func(h *tale) {
			w := h.write(-1, 1)
			h.pass("r")
			h.ack(w, 0)
		}, ""},
		{"high watermarks of answers that crossed", func(h *tale) {
			late := h.sight(0, 0)
			h.ack(h.write(-1, 1), 0)
			late.got = h.tick()
			h.pass("r", 1)
		}, ""},

		{"acknowledged and lost", func(h *tale) {
			h.ack(h.write(-1, 1), 0)
			h.pass("r")
		}, "1: record 1 of p, acknowledged at t/0 offset 0, was not given to r"},
		{"another record at an acknowledged offset", func(h *tale) {
			h.ack(h.write(-1, 1), 0)
			h.write(-1, 2)
			h.read("r", 0, 1, 2)
		}, "2: t/0 offset 0 is record 1 to p, and record 2 to r"},
		{"two readers, two records", func(h *tale) {
			h.write(-1, 1)
			h.write(-1, 2)
			h.read("r", 0, 1, 1)
			h.read("s", 0, 1, 2)
		}, "2: t/0 offset 0 is record 1 to r, and record 2 to s"},
		{"sent once, there twice", func(h *tale) {
			h.ack(h.write(-1, 1), 0)
			h.pass("r", 1, 1)
		}, "1: record 1 of p was sent once, and is at offsets [0 1] of t/0"},
		{"a record of nobody", func(h *tale) { h.read("r", 0, 1, 9) }, "1: r was given record 9 at t/0 offset 0: nobody wrote it"},
		{"a record of another partition", func(h *tale) {
			h.write(-1, 1).partition = p1
			h.read("r", 0, 1, 1)
		}, "1: r was given record 1 at t/0 offset 0: it was written to t/1"},
		{"a hole in a fetch", func(h *tale) {
			h.write(-1, 1)
			h.write(-1, 2)
			h.read("r", 0, 3, 1, 2).records[1].offset = 2
		}, "1: r was given offset 2 of t/0 where 1 was due"},
		{"a fetch that begins too late", func(h *tale) {
			h.write(-1, 1)
			h.read("r", 0, 2, 1).records[0].offset = 1
		}, "1: r was given offset 1 of t/0 where 0 was due"},
		{"a record above the high watermark", func(h *tale) {
			h.write(-1, 1)
			h.read("r", 0, 0, 1)
		}, "2: r was given offset 0 of t/0, the high watermark is 0"},
		{"the high watermark goes back", func(h *tale) {
			h.sight(-1, 5)
			h.sight(-1, 4)
		}, "2: high watermark of t/0 was 5, then 4"},
		{"the high watermark goes back to 0 in a fetch", func(h *tale) {
			h.sight(-1, 5)
			h.read("r", 5, 0)
		}, "2: high watermark of t/0 was 5, then 0"},
		{"the log start goes back", func(h *tale) {
			h.sight(3, -1)
			h.sight(0, -1)
		}, "2: log start of t/0 was 3, then 0"},
		{"the high watermark is below what is acknowledged", func(h *tale) {
			h.ack(h.write(-1, 1, 2), 0)
			h.sight(-1, 1)
		}, "2: high watermark of t/0 was 2, then 1"},
		{"out of range within the bounds", func(h *tale) {
			h.sight(0, 5)
			h.read("r", 5, -1).outOfRange = true
		}, "2: offset 5 of t/0 is out of range to r, its bounds were 0 and 5"},
		{"acknowledged below the high watermark", func(h *tale) {
			h.sight(-1, 5)
			h.ack(h.write(1, 1), 0)
		}, "2: high watermark of t/0 was 5, then 0"},
		{"found by its time", func(h *tale) {
			h.write(-1, 1, 2, 3).made = 10
			h.pass("r", 1, 2, 3)
			h.lookUp(11, 1, 11)
			h.lookUp(13, -1, -1)
		}, ""},
		{"an earlier record is of the time", func(h *tale) {
			h.write(-1, 1, 2, 3).made = 10
			h.pass("r", 1, 2, 3)
			h.lookUp(10, 1, 11)
		}, "1: c asked t/0 for time 10 and was given offset 1; offset 0 is of time 10"},
		{"the record found is of another time", func(h *tale) {
			h.write(-1, 1, 2, 3).made = 10
			h.pass("r", 1, 2, 3)
			h.lookUp(12, 2, 13)
		}, "1: c asked t/0 for time 12 and was given offset 2, of time 13; it is of time 12"},
		{"none found where there is one", func(h *tale) {
			h.write(-1, 1).made = 10
			h.pass("r", 1)
			h.sight(0, 1)
			h.lookUp(10, -1, -1)
		}, "1: c asked t/0 for time 10 and was given offset -1; offset 0 is of time 10"},
		{"one offset, two epochs", func(h *tale) {
			h.write(-1, 1)
			h.read("r", 0, 1, 1)
			h.read("s", 0, 1, 1).records[0].epoch = 2
		}, "3: t/0 offset 0 is of epoch 1 to r, and of epoch 2 to s"},
		{"epochs fall", func(h *tale) {
			h.write(-1, 1, 2)
			h.read("r", 0, 2, 1, 2).records[0].epoch = 2
		}, "3: t/0 offset 1 is of epoch 1, after one of epoch 2"},
		{"a batch torn apart", func(h *tale) {
			h.write(-1, 1, 2)
			h.write(-1, 3)
			h.read("r", 0, 3, 1, 3, 2)
		}, "2: records 1 and 2 of one batch of p are at offsets 0 and 2 of t/0"},
		{"one connection, out of order", func(h *tale) {
			h.write(-1, 1)
			h.write(-1, 2)
			h.read("r", 0, 2, 2, 1)
		}, "2: p sent record 2 after another on p-1, and it is before that, at offset 0 of t/0"},
		{"two connections, either order", func(h *tale) {
			h.write(-1, 1)
			h.write(-1, 2).conn = "p-2"
			h.read("r", 0, 2, 2, 1)
		}, ""},

		{"orderly, and acks=1 lost", func(h *tale) {
			h.orderly = true
			h.ack(h.write(1, 1), 0)
			h.pass("r")
		}, "1: record 1 of p, acknowledged at t/0 offset 0, was not given to r"},
		{"calm, and not acknowledged", func(h *tale) {
			h.calm = true
			h.write(-1, 1)
			h.pass("r", 1)
		}, "calm: a batch of p was not acknowledged"},
		{"calm, and acks=0 lost", func(h *tale) {
			h.calm = true
			h.write(0, 1)
			h.pass("r")
		}, "calm: record 1 of p is at offsets [] of t/0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var h tale
			test.tell(&h)
			complains(t, h.check(), test.want)
		})
	}
}
